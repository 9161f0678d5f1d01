#pragma once

#include <deque>
#include <functional>
#include <utility>

namespace torpor::server {

// Runs asynchronous steps in order. Not thread-safe. A step calls the function that it gets exactly
// once, at once or later, when it is finished.
class StepQueue {
 public:
  using Finish = std::function<void()>;
  using Step = std::function<void(Finish)>;

  void Add(Step step) {
    steps_.push_back(std::move(step));
    Pump();
  }

  // Drops steps that have not begun.
  void Clear() { steps_.clear(); }

  bool idle() const { return !is_running_ && steps_.empty(); }

 private:
  // A loop, not a recursion: steps that finish at once must not fill up the stack.
  void Pump() {
    if (is_pumping_) return;
    is_pumping_ = true;
    while (!is_running_ && !steps_.empty()) {
      const Step step = std::move(steps_.front());
      steps_.pop_front();
      is_running_ = true;
      step([this] {
        is_running_ = false;
        Pump();
      });
    }
    is_pumping_ = false;
  }

  std::deque<Step> steps_;
  bool is_running_ = false;
  bool is_pumping_ = false;
};

}  // namespace torpor::server
