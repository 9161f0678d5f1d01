#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/files.h"
#include "base/unique_fd.h"
#include "server/broker/request_broker.h"
#include "server/config/config.h"
#include "server/controller/admin_request.h"
#include "server/controller/model/telemetry.h"
#include "server/controller/node_snapshot.h"
#include "server/controller/request_trace.h"

namespace torpor::server {

// All of torpord behind the router: supervisor, executors, sessions and their memory, scheduler.
// Thread-safe.
class Node {
 public:
  struct Programs {
    std::string executor;  // empty: torpor-executor beside the running program
  };

  // Opens the sockets, then starts one executor per GPU. Returns as soon as sessions can connect;
  // Ready() tells when the first executor serves. An empty `config.cuda_library_dir` means the
  // dynamic linker's libraries. `telemetry` must outlive the node. Fails if a token cannot be read,
  // a socket cannot be bound, the executor's program is missing or no device exists.
  // `kept`: descriptors that an earlier torpord had its service manager keep; the node goes on with
  // the sessions whose memory they are. `disk`: of sessions' records and spilled images; outlives
  // the node.
  static absl::StatusOr<std::unique_ptr<Node>> Start(const Config& config, Telemetry& telemetry,
                                                     const Programs& programs,
                                                     std::map<std::string, UniqueFd> kept = {},
                                                     Files& disk = SystemFiles());
  static absl::StatusOr<std::unique_ptr<Node>> Start(const Config& config, Telemetry& telemetry);

  virtual ~Node() = default;  // Stop()

  virtual RequestBroker& broker() = 0;

  // Waits for the controller's thread: microseconds, never a swap or a lease.
  virtual NodeSnapshot Snapshot() = 0;

  // Waits for the request's outcome, at most about half a minute; see AdminRequests::Start.
  virtual absl::Status Administer(const AdminRequest& request) = 0;

  // Makes the configuration's functions and tenants the node's, and reads all tokens anew; the rest
  // of the configuration must be as at the start. On an error, which names the function, nothing is
  // changed. `is_trial`: nothing is changed in any case.
  virtual absl::Status Reconfigure(const Config& config, bool is_trial) = 0;

  // As Controller::Explain; or Unavailable.
  virtual absl::StatusOr<RequestTrace> Explain(const std::string& request_id) = 0;

  // Runs `task` on the controller's thread, after what is queued there; dropped once the node has
  // stopped. May wait while the queue is full.
  virtual void Post(std::function<void()> task) = 0;

  // Whether an executor serves and the node is not draining.
  virtual bool Ready() = 0;
  // As Controller::ServingUpstreams.
  virtual std::vector<std::string> ServingUpstreams(const std::string& function) = 0;

  // New requests are refused (Unavailable) from now on. Returns when no request is queued or
  // running, or after the configured drain_timeout.
  virtual void Drain() = 0;

  // Before Stop, for a restart: leaves the sessions to the next torpord, if a service manager keeps
  // their memory.
  virtual void LeaveSessions() = 0;

  // Ends sessions and executors; kills executors that do not end by themselves. Answers waiting
  // requests with Unavailable. Idempotent.
  virtual void Stop() = 0;
};

}  // namespace torpor::server
