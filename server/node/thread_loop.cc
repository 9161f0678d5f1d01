#include "server/node/thread_loop.h"

#include <optional>

#include "base/thread_name.h"

namespace torpor::server {
namespace {

constexpr std::size_t kMaxQueued = 1 << 16;

}  // namespace

ThreadLoop::Worker::Worker(const char* name, ThreadLoop& loop)
    : jobs_(kMaxQueued), thread_([this, name, &loop] {
        NameThread(name);
        while (std::optional<std::pair<Task, Task>> job = jobs_.Receive()) {
          job->first();
          loop.Post(std::move(job->second));
        }
      }) {}

void ThreadLoop::Worker::Stop() {
  jobs_.Close();
  if (thread_.joinable()) thread_.join();
}

ThreadLoop::ThreadLoop() : tasks_(kMaxQueued), loop_thread_([this] { Run(); }) {}

ThreadLoop::~ThreadLoop() { Stop(); }

void ThreadLoop::Stop() {
  background_.Stop();
  disk_.Stop();
  tasks_.Close();
  if (loop_thread_.joinable()) loop_thread_.join();
}

void ThreadLoop::Post(Task task) {
  if (IsLoopThread()) {
    own_tasks_.push_back(std::move(task));
  } else {
    tasks_.Send(std::move(task));
  }
}

void ThreadLoop::RunAt(TimePoint when, Task task) {
  timers_.emplace(std::pair(when, next_timer_++), std::move(task));
}

void ThreadLoop::InBackground(Task work, Task then) {
  background_.Send(std::move(work), std::move(then));
}

void ThreadLoop::OnDisk(Task work, Task then) { disk_.Send(std::move(work), std::move(then)); }

void ThreadLoop::Run() {
  NameThread("controller");
  while (true) {
    // A bounded wait also tells a closed mailbox from an empty mailbox.
    std::optional<Task> task =
        timers_.empty() ? tasks_.Receive() : tasks_.ReceiveUntil(timers_.begin()->first.first);
    if (task) {
      (*task)();
      RunOwnTasks();
    } else if (timers_.empty() || timers_.begin()->first.first > Now()) {
      return;
    }
    RunDueTimers();
  }
}

void ThreadLoop::RunOwnTasks() {
  while (!own_tasks_.empty()) {
    const Task task = std::move(own_tasks_.front());
    own_tasks_.pop_front();
    task();
  }
}

void ThreadLoop::RunDueTimers() {
  while (!timers_.empty() && timers_.begin()->first.first <= Now()) {
    const Task task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    task();
    RunOwnTasks();
  }
}

}  // namespace torpor::server
