#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/config/config.h"
#include "server/config/settings.h"
#include "server/controller/hint.h"
#include "server/controller/node_snapshot.h"
#include "server/controller/request_broker.h"
#include "server/controller/request_story.h"
#include "server/controller/telemetry.h"

namespace torpor::server {

// Everything of torpord behind the router: the executors and who watches them, the sessions and
// their memory, the scheduler. All functions are thread-safe.
class Node {
 public:
  struct Programs {
    std::string executor;  // empty: torpor-executor beside the running program
  };

  // Opens the sockets, then starts one executor a GPU. Returns as soon as sessions can connect;
  // Ready() tells when the first executor serves. `config.cuda_library_dir` is taken as it is:
  // empty means what the dynamic linker finds. `telemetry` must outlive the node. Fails where a
  // token cannot be read, a socket cannot be bound, the executor's program is missing or there is
  // no device.
  static absl::StatusOr<std::unique_ptr<Node>> Start(const Config& config, Telemetry& telemetry,
                                                     const Programs& programs);
  static absl::StatusOr<std::unique_ptr<Node>> Start(const Config& config, Telemetry& telemetry);

  virtual ~Node() = default;  // Stop()

  virtual RequestBroker& broker() = 0;

  // Waits for the controller's thread: a moment, never a swap or a lease.
  virtual NodeSnapshot Snapshot() = 0;

  // Waits until what is asked for has come true, or cannot; see Controller::Advise. At most about
  // half a minute.
  virtual absl::Status Advise(const Hint& hint) = 0;

  // As Controller::Change; or Unavailable.
  virtual absl::Status Change(const std::string& function,
                              std::span<const SettingText> changes) = 0;

  // As Controller::Explain; or Unavailable.
  virtual absl::StatusOr<RequestStory> Explain(const std::string& request_id) = 0;

  // At least one executor serves and the node is not draining.
  virtual bool Ready() = 0;

  // New requests are refused (Unavailable) from now on. Returns when no request is queued or
  // running, or after the configured drain_timeout.
  virtual void Drain() = 0;

  // Ends sessions and executors, which are killed if they do not end by themselves. Requests
  // that still wait are answered Unavailable. Idempotent.
  virtual void Stop() = 0;
};

}  // namespace torpor::server
