#pragma once

#include "absl/status/statusor.h"
#include "server/controller/memory/host_room.h"
#include "server/controller/memory/session_segments.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Allocates and frees pinned host memory of processes, in the host arena, which all executors map.
// Answers the client by MemoryReply. On the controller's thread.
class HostAllocations {
 public:
  // The arguments must outlive the object.
  HostAllocations(ExecutorTable& executors, SessionSegments& segments, HostRoom& room,
                  TaskLoop& loop)
      : executors_(executors), segments_(segments), room_(room), loop_(loop) {}

  void Alloc(const SessionPtr& session, const wire::HostAlloc& call);
  void Free(const SessionPtr& session, const wire::HostFree& call);

 private:
  void AllocNow(const SessionPtr& session, const wire::HostAlloc& call,
                const StepQueue::Finish& finish);
  // Returns a piece of the session's host arena, which grows if necessary.
  absl::StatusOr<memory::Block> TakeAddresses(ClientSession& session, Bytes bytes);
  // An executor could not map `block`, for the reason `why`.
  void UndoAlloc(const SessionPtr& session, const wire::HostAlloc& call, memory::Block block,
                 const absl::Status& why, const StepQueue::Finish& finish);
  void FreeNow(const SessionPtr& session, const wire::HostFree& call,
               const StepQueue::Finish& finish);

  ExecutorTable& executors_;
  SessionSegments& segments_;
  HostRoom& room_;
  TaskLoop& loop_;
};

}  // namespace torpor::server
