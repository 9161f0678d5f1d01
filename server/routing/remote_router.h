#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/broker/node_inquiry.h"
#include "server/broker/request_broker.h"
#include "server/config/config.h"

namespace torpor::server {

// The node's router as torpord sees it: a process that torpor-router runs, and the stream by which
// it asks for leases. Thread-safe.
class RemoteRouter {
 public:
  struct Parts {
    RequestBroker* broker = nullptr;  // must outlive the router and its own callbacks
    std::function<Readiness(const std::string& function)> readiness;  // empty: of the node
    std::function<std::string()> metrics;                             // torpord's part of /metrics
    std::string program;                                              // of torpor-router
  };

  // Takes over the router that an earlier torpord has left or starts one, and waits until it
  // serves. Unavailable if it cannot, for example for an address in use.
  static absl::StatusOr<std::unique_ptr<RemoteRouter>> Start(const Config& config, Parts parts);

  // Leaves the process to the next torpord, unless Stop came first.
  virtual ~RemoteRouter() = default;

  // host:port as bound; empty if not configured.
  virtual std::string http_address() const = 0;
  virtual std::string metrics_address() const = 0;

  // Makes these the node's functions, for requests from then on.
  virtual void SetFunctions(std::map<std::string, FunctionConfig> functions) = 0;

  // The router refuses new requests, waits for those in progress up to the drain timeout, and ends.
  virtual void Stop() = 0;

  // For a restart of torpord. From now on new requests wait in the router.
  virtual void Pause() = 0;
};

}  // namespace torpor::server
