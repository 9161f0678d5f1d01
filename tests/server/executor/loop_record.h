#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace torpor::executor {

inline constexpr auto kPatience = std::chrono::seconds(20);

// Events of all threads, in order; held work waits.
class Record {
 public:
  void Note(const std::string& what) {
    std::lock_guard lock(mutex_);
    NoteLocked(what);
  }
  void Work(const std::string& name) {
    std::unique_lock lock(mutex_);
    NoteLocked(name);
    changed_.wait(lock, [&] { return !held_.contains(name); });
    NoteLocked(name + " ends");
  }
  void Hold(const std::string& name) {
    std::lock_guard lock(mutex_);
    held_.insert(name);
  }
  void LetGo(const std::string& name) {
    std::lock_guard lock(mutex_);
    held_.erase(name);
    changed_.notify_all();
  }
  void LetAllGo() {
    std::lock_guard lock(mutex_);
    held_.clear();
    changed_.notify_all();
  }

  // Waits until the event has happened so many times; false after kPatience.
  bool Await(const std::string& what, int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience,
                             [&] { return std::ranges::count(noted_, what) >= times; });
  }
  std::vector<std::string> noted() {
    std::lock_guard lock(mutex_);
    return noted_;
  }

 private:
  void NoteLocked(const std::string& what) {
    noted_.push_back(what);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> noted_;
  std::set<std::string> held_;
};

// A clock moved by the test. Begins before every time of the machine's clock, so that no wait for a
// time of this clock lasts.
class StandingClock final : public Clock {
 public:
  TimePoint Now() const override {
    std::unique_lock lock(mutex_);
    const TimePoint now = now_;
    if (at_readings_.empty()) return now;
    const std::function<void()> what = std::move(at_readings_.front());
    at_readings_.pop_front();
    lock.unlock();
    what();
    return now;
  }
  void Pass(Duration time) {
    std::lock_guard lock(mutex_);
    now_ += time;
  }
  // Does these things while the clock is read, one at each of the next readings.
  void AtNextReadings(std::deque<std::function<void()>> what) {
    std::lock_guard lock(mutex_);
    at_readings_ = std::move(what);
  }

 private:
  mutable std::mutex mutex_;
  TimePoint now_{};
  mutable std::deque<std::function<void()>> at_readings_;
};

}  // namespace torpor::executor
