#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Runs everything on the test's own thread, at a time that the test sets.
class FakeLoop final : public TaskLoop {
 public:
  TimePoint Now() const override { return now_; }
  void Post(Task task) override { tasks_.push_back(std::move(task)); }
  void RunAt(TimePoint when, Task task) override { timers_.emplace(when, std::move(task)); }
  void InBackground(Task work, Task then) override {
    Post([work = std::move(work), then = std::move(then)] {
      work();
      then();
    });
  }
  void OnDisk(Task work, Task then) override { InBackground(std::move(work), std::move(then)); }

  // Runs tasks until none is posted any more.
  void RunAll() {
    while (!tasks_.empty()) {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }

  // Drops tasks and timers, as the death of a process does. Time goes on.
  void Forget() {
    tasks_.clear();
    timers_.clear();
  }

  // Lets time pass, timer by timer.
  void Advance(Duration duration) {
    const TimePoint end = now_ + duration;
    RunAll();
    while (!timers_.empty() && timers_.begin()->first <= end) {
      now_ = std::max(now_, timers_.begin()->first);
      const Task task = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      task();
      RunAll();
    }
    now_ = end;
  }

 private:
  TimePoint now_{std::chrono::seconds(1000)};
  std::deque<Task> tasks_;
  std::multimap<TimePoint, Task> timers_;
};

}  // namespace torpor::server
