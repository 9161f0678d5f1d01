#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/ids.h"
#include "proto/torpor/v1/node.pb.h"
#include "server/executor/image/pool_client.h"
#include "server/executor/served_domain.h"
#include "server/executor/session/session.h"
#include "server/executor/session/session_registry.h"
#include "server/executor/session_memory/node_windows.h"
#include "server/executor/session_memory/peer_pools.h"
#include "server/executor/session_memory/tenant_memories.h"

namespace torpor::executor {

// The executor's objects that operations use. All references must outlive the operations.
struct OperationEnvironment {
  SessionEnvironment session;
  SessionRegistry& registry;
  MemoryDirectory& directory;
  const NodeWindows& windows;
  TenantMemories& tenants;
  PeerPools& peer_pools;
  ServedDomain& domain;
  const PoolClient* pool_owner;  // null: this process owns the GPU's memory
  std::string descriptor_socket;
  Duration lease_end_patience{};  // limit for a session's work to end
  SwapOptions swap;
};

// Returns the session of an operation; an empty id for Shutdown.
SessionId SessionOf(const v1::DaemonMessage& operation);

// Result of one operation, for the answer to torpord.
struct OperationOutcome {
  std::uint64_t operation_id = 0;
  SessionId session;
  absl::Status status;
  memory::MovedBytes to_host;
  bool has_more = false;  // SwappedOut
  memory::MovedBytes from_peer;
  ImageUse memory;  // of the session after the operation
  MemoryFindings findings;
  Duration duration{};
  bool is_answered = false;  // torpord has been told of success already
};

// Carries out one operation on a session. Blocks. `stream` must belong to the calling thread, with
// the device current. `answer_early` is called with the outcome of an operation that goes on where
// torpord need not wait for the end; an error after that is as bad as a lost context.
using AnswerEarly = std::function<void(const OperationOutcome&)>;
OperationOutcome RunOperation(const OperationEnvironment& environment,
                              const v1::DaemonMessage& operation, CUstream stream,
                              const AnswerEarly& answer_early);

}  // namespace torpor::executor
