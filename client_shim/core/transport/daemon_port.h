#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "proto/wire/control_messages.h"

namespace torpor::shim {

// The way from a session's parts to torpord. Thread-safe.
class DaemonPort {
 public:
  virtual ~DaemonPort() = default;

  // Sends a message that has no answer, or queues the message if the socket is full. Never waits.
  virtual void Send(const wire::ClientMessage& message) = 0;

  // Sends `request`, which carries `request_id`, and waits for the answer with the same id. Returns
  // cudaErrorDevicesUnavailable if the daemon is lost before the answer.
  virtual cudaError_t Ask(std::uint64_t request_id, const wire::ClientMessage& request,
                          wire::ServerMessage& reply) = 0;

  // Sends `request`, which carries `request_id`, and drops the answer. Never waits.
  virtual void Tell(std::uint64_t request_id, const wire::ClientMessage& request) = 0;
};

}  // namespace torpor::shim
