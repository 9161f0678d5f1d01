#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/controller/memory/host_room.h"
#include "server/controller/memory/memory_limits.h"
#include "server/controller/memory/session_segments.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Allocates and frees pinned host memory of processes, in the host arena, which all executors map.
// Answers the client by MemoryReply. On the controller's thread.
class HostAllocations {
 public:
  // The arguments must outlive the object.
  HostAllocations(const InstanceTable& instances, ExecutorTable& executors,
                  const MemoryLimits& limits, SessionSegments& segments, HostRoom& room,
                  TaskLoop& loop)
      : instances_(instances),
        executors_(executors),
        limits_(limits),
        segments_(segments),
        room_(room),
        loop_(loop) {}

  void Alloc(const SessionPtr& session, const wire::HostAlloc& call);
  void Free(const SessionPtr& session, const wire::HostFree& call);

 private:
  void AllocNow(const SessionPtr& session, const wire::HostAlloc& call,
                const StepQueue::Finish& finish);
  // Says why the session may not allocate so much; empty: it may.
  std::string ReasonToRefuse(const ClientSession& session, Bytes bytes) const;
  // Returns a piece of the session's host arena, which grows if necessary.
  absl::StatusOr<memory::Block> TakeAddresses(ClientSession& session, Bytes bytes);
  // An executor could not map `block`, for the reason `why`.
  void UndoAlloc(const SessionPtr& session, const wire::HostAlloc& call, memory::Block block,
                 const absl::Status& why, const StepQueue::Finish& finish);
  void FreeNow(const SessionPtr& session, const wire::HostFree& call,
               const StepQueue::Finish& finish);

  const InstanceTable& instances_;
  ExecutorTable& executors_;
  const MemoryLimits& limits_;
  SessionSegments& segments_;
  HostRoom& room_;
  TaskLoop& loop_;
};

}  // namespace torpor::server
