#pragma once

#include <functional>

#include "base/clock.h"

namespace torpor::server {

// The thread that owns the controller's state, with its clock, timers and workers.
class TaskLoop {
 public:
  using Task = std::function<void()>;

  virtual ~TaskLoop() = default;

  virtual TimePoint Now() const = 0;

  // Runs `task` on the loop's thread, after all earlier posts. Any thread; may block threads other
  // than the loop's own while the queue is full. Dropped once the loop has stopped.
  virtual void Post(Task task) = 0;

  // Runs `task` at `when` or soon after. Only on the loop's thread. Cannot be cancelled: a task
  // checks whether it still applies.
  virtual void RunAt(TimePoint when, Task task) = 0;

  // Runs `work` on another thread, in order, and `then` on the loop.
  virtual void InBackground(Task work, Task then) = 0;
  // As InBackground, on a third thread, for work that waits for a disk.
  virtual void OnDisk(Task work, Task then) = 0;
};

}  // namespace torpor::server
