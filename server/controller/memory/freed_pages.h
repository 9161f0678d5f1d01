#pragma once

#include "memory/range_allocator.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Gives the host memory of freed chunks of images back to the system, when nobody waits: executors
// must unpin the pages first, which takes them as long as pinning. A new allocation may use the
// chunks again meanwhile. On the controller's thread.
class FreedPages {
 public:
  // All must outlive the object.
  FreedPages(const SessionTable& sessions, ExecutorTable& executors, TaskLoop& loop)
      : sessions_(sessions), executors_(executors), loop_(loop) {}

  // Part of a step of the session: `chunks` of the image hold no allocation any more, and their
  // blocks count as untouched.
  void Add(ClientSession& session, memory::Block chunks) const;
  // Part of a step of the session, before memory behind the new allocation `block` is used: makes
  // the block's chunks read as zero. Then runs `then`.
  void Reuse(ClientSession& session, memory::Block block, const TaskLoop::Task& then) const;
  // Gives some of every session's chunks back, where executors are idle. Call once a second.
  void GiveBack();

 private:
  // A step of the session: gives one piece back, and adds a step for the next.
  void GiveBackPiece(const SessionPtr& session, const StepQueue::Finish& finish);
  void AddStep(const SessionPtr& session);
  void OnUnpinned(const SessionPtr& session, memory::Block piece, const absl::Status& status,
                  const StepQueue::Finish& finish);

  const SessionTable& sessions_;
  ExecutorTable& executors_;
  TaskLoop& loop_;
};

}  // namespace torpor::server
