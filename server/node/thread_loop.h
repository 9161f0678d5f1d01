#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "base/mailbox.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// A TaskLoop with real threads and the real clock.
class ThreadLoop final : public TaskLoop {
 public:
  ThreadLoop();
  ~ThreadLoop() override;  // Stop()

  TimePoint Now() const override { return clock_.Now(); }
  void Post(Task task) override;
  void RunAt(TimePoint when, Task task) override;
  void InBackground(Task work, Task then) override;
  void OnDisk(Task work, Task then) override;

  // Runs queued tasks first, but no timers. Not on the loop's thread. Idempotent.
  void Stop();

  bool IsLoopThread() const { return std::this_thread::get_id() == loop_thread_.get_id(); }

 private:
  // Runs jobs in their order on a thread of its own, and posts what follows.
  class Worker {
   public:
    Worker(const char* name, ThreadLoop& loop);
    void Send(Task work, Task then) { jobs_.Send({std::move(work), std::move(then)}); }
    // Finishes all jobs.
    void Stop();

   private:
    Mailbox<std::pair<Task, Task>> jobs_;
    std::thread thread_;
  };

  void Run();
  void RunOwnTasks();
  void RunDueTimers();

  SteadyClock clock_;
  Mailbox<Task> tasks_;
  std::deque<Task> own_tasks_;  // posted by the loop itself
  std::map<std::pair<TimePoint, std::uint64_t>, Task> timers_;
  std::uint64_t next_timer_ = 0;
  std::thread loop_thread_;
  Worker background_{"background", *this};
  Worker disk_{"disk", *this};
};

}  // namespace torpor::server
