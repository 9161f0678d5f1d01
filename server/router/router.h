#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/broker/node_inquiry.h"
#include "server/broker/request_broker.h"
#include "server/config/config.h"
#include "server/router/request_metrics.h"

namespace torpor::server {

// The HTTP/1.1 front of the node (docs/router.md): a reverse proxy with one lease per request, the
// health paths, and /metrics on a separate address. Runs on one thread of its own.
class Router {
 public:
  // The router's dependencies; must outlive the router.
  struct Parts {
    RequestBroker* broker = nullptr;
    NodeInquiry* node = nullptr;
    RequestMetrics* metrics = nullptr;
  };
  struct Options {
    RouterConfig config;
    Duration drain_timeout{std::chrono::seconds(30)};
  };

  // Binds the configured addresses, except empty ones. Connections wait until the first
  // SetFunctions. Unavailable if an address cannot be bound.
  static absl::StatusOr<std::unique_ptr<Router>> Start(const Options& options, Parts parts);

  virtual ~Router() = default;  // Close

  // host:port as bound; empty if not configured.
  virtual std::string http_address() const = 0;
  virtual std::string metrics_address() const = 0;

  // Makes these the node's functions. Requests in progress keep theirs. Thread-safe.
  virtual void SetFunctions(std::map<std::string, FunctionConfig> functions) = 0;
  // Replaces all settings but the addresses. Thread-safe.
  virtual void SetOptions(const Options& options) = 0;

  // Runs `task` on the router's thread; dropped once the router is closed. Thread-safe.
  virtual void Post(std::function<void()> task) = 0;

  // Answers new requests with 503 and closes idle connections from now on. Returns when no request
  // is in progress, or after the configured drain_timeout.
  virtual void Drain() = 0;

  // Stops at once: closes connections and releases requests. Idempotent.
  virtual void Close() = 0;
};

}  // namespace torpor::server
