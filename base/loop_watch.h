#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace torpor {

// Tells whether a thread that works off a queue of tasks still does. As thread-safe as `post`.
class LoopWatch {
 public:
  using Task = std::function<void()>;

  // `post` queues a task for the thread, and may drop the task when the thread ends.
  explicit LoopWatch(std::function<void(Task)> post) : post_(std::move(post)) {}

  // Whether the thread has run the task that the call before queued; true at the first call. Queues
  // another task if so.
  bool Turns() {
    if (!has_run_->exchange(false)) return false;
    post_([has_run = has_run_] { has_run->store(true); });
    return true;
  }

 private:
  const std::function<void(Task)> post_;
  const std::shared_ptr<std::atomic<bool>> has_run_ = std::make_shared<std::atomic<bool>>(true);
};

}  // namespace torpor
