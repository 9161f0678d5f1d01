#pragma once

#include <functional>

#include "base/clock.h"

namespace torpor::server {

// The one thread that owns the controller's state, and what it needs from outside: time, and
// somebody to do what takes long.
class TaskLoop {
 public:
  using Task = std::function<void()>;

  virtual ~TaskLoop() = default;

  virtual TimePoint Now() const = 0;

  // Runs `task` on the loop's thread, after everything that was posted before. Any thread; may
  // block a thread that is not the loop's own while very much is queued. Dropped once the loop
  // has stopped.
  virtual void Post(Task task) = 0;

  // Runs `task` at `when` or soon after. Only on the loop's thread. There is no way back: a task
  // that may have become pointless looks for itself.
  virtual void RunAt(TimePoint when, Task task) = 0;

  // Runs `work` on another thread, in order, and `then` on the loop.
  virtual void InBackground(Task work, Task then) = 0;
};

}  // namespace torpor::server
