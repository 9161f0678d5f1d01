#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/config.h"
#include "server/controller/node_snapshot.h"
#include "server/controller/request_broker.h"
#include "server/metrics/metrics.h"

namespace torpor::server {

// The HTTP/1.1 front of the node (docs/router.md): a reverse proxy with one lease per request, the
// health paths, and /metrics on a separate address. Runs on one thread of its own.
class Router {
 public:
  // The router's dependencies; must outlive the router. Functions are called on the router's
  // thread.
  struct Parts {
    RequestBroker* broker = nullptr;
    Metrics* metrics = nullptr;
    std::function<bool()> is_ready;
    // Returns the upstreams (host:port) of the function's instances that can serve.
    std::function<std::vector<std::string>(const std::string& function)> serving_upstreams;
    std::function<NodeSnapshot()> snapshot;
  };

  // Binds the configured addresses, except empty ones. Unavailable if an address cannot be bound.
  static absl::StatusOr<std::unique_ptr<Router>> Start(const Config& config, Parts parts);

  // Stops at once: closes connections and releases requests.
  virtual ~Router() = default;

  // host:port as bound; empty if not configured.
  virtual std::string http_address() const = 0;
  virtual std::string metrics_address() const = 0;

  // Makes these the node's functions, for requests from then on. Thread-safe.
  virtual void SetFunctions(const std::map<std::string, FunctionConfig>& functions) = 0;

  // Answers new requests with 503 and closes idle connections from now on. Returns when no request
  // is in progress, or after the configured drain_timeout.
  virtual void Drain() = 0;
};

}  // namespace torpor::server
