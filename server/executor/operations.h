#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/ids.h"
#include "proto/torpor/v1/node.pb.h"
#include "server/executor/session/session.h"
#include "server/executor/session/session_registry.h"

namespace torpor::executor {

// What torpord's operations need besides the sessions.
struct OperationEnvironment {
  SessionEnvironment session;
  SessionRegistry& registry;
  MemoryDirectory& directory;
  std::string descriptor_socket;
  Duration lease_end_patience{};  // for a session's work to end
  SwapOptions swap;
};

// The session that an operation is about; none for Shutdown.
SessionId SessionOf(const v1::DaemonMessage& operation);

// How an operation went.
struct OperationResult {
  std::uint64_t operation_id = 0;
  SessionId session;
  absl::Status status;
  memory::MovedBytes to_host;
  bool has_more = false;  // SwappedOut
  memory::MovedBytes from_peer;
  ImageUse memory;  // of the session, afterwards
  SeenOfMemory seen;
  Duration duration{};
};

// Carries out one operation on a session; blocks. `stream` is the calling thread's own, and the
// device is current on it.
OperationResult RunOperation(const OperationEnvironment& environment,
                             const v1::DaemonMessage& operation, CUstream stream);

}  // namespace torpor::executor
