#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/config/config.h"
#include "server/controller/node_snapshot.h"
#include "server/controller/request_broker.h"
#include "server/metrics/metrics.h"

namespace torpor::server {

// The HTTP/1.1 front of the node (docs/router.md): a reverse proxy that takes one lease a
// request, the health paths, and /metrics on an address of its own. It runs on one thread.
class Router {
 public:
  // What the router needs of the node; all of it outlives the router. The functions are called
  // on the router's thread.
  struct Parts {
    RequestBroker* broker = nullptr;
    Metrics* metrics = nullptr;
    std::function<bool()> is_ready;
    std::function<NodeSnapshot()> snapshot;
  };

  // Binds the configured addresses; an empty one is not served. Unavailable where an address
  // cannot be bound.
  static absl::StatusOr<std::unique_ptr<Router>> Start(const Config& config, Parts parts);

  // Stops at once: connections are closed, requests released.
  virtual ~Router() = default;

  // host:port as bound; empty where not served.
  virtual std::string http_address() const = 0;
  virtual std::string metrics_address() const = 0;

  // New requests are answered 503 from now on, idle connections closed. Returns when no request
  // is in progress, or after the configured drain_timeout.
  virtual void Drain() = 0;
};

}  // namespace torpor::server
