#include "emulator/driver/stream/stream.h"

#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "emulator/driver/stream/completion.h"
#include "emulator/driver/stream/model_clock.h"
#include "emulator/exec/runtime/kernel_thread.h"

namespace torpor::emulator {
namespace {

thread_local bool on_worker_thread = false;

// The application's signals are not ours to handle; faults of kernels are.
class BlockSignals {
 public:
  BlockSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

bool Stream::OnWorkerThread() { return on_worker_thread; }

// Submitters take turns, so that sequence numbers follow the order of the queue even if work runs
// inline.
std::uint64_t Stream::Submit(Work work, std::vector<Dependency> dependencies, Placement placement) {
  std::erase_if(dependencies, [](const Dependency& d) { return d.stream->Finished(d.sequence); });
  std::lock_guard order(submit_mutex_);
  const std::uint64_t sequence = submitted_.load(std::memory_order_relaxed) + 1;
  const std::uint64_t turn = issue_queue_ == nullptr ? 0 : issue_queue_->Enter();
  const bool first = issue_queue_ == nullptr || issue_queue_->IsTurn(turn);
  if (placement == Placement::kInlineIfIdle && first && dependencies.empty() && Idle()) {
    if (issue_queue_ != nullptr) issue_queue_->Begin();
    ModelClock::BeginWork();
    work();
    completed_.store(sequence, std::memory_order_release);
    submitted_.store(sequence, std::memory_order_release);
    return sequence;
  }
  {
    std::lock_guard lock(mutex_);
    StartThreadLocked();
    submitted_.store(sequence, std::memory_order_release);
    queue_.push_back({.work = std::move(work),
                      .dependencies = std::move(dependencies),
                      .submitted = std::chrono::steady_clock::now(),
                      .turn = turn,
                      .holds_queue = placement == Placement::kWait,
                      .is_for_any = placement == Placement::kForAnyThread});
    queued_.store(queue_.size(), std::memory_order_release);
  }
  changed_.notify_one();
  return sequence;
}

// Call with mutex_ held. The thread keeps the stream alive until the queue is empty and closed.
void Stream::StartThreadLocked() {
  if (started_) return;
  BlockSignals block;
  StartKernelThread([self = shared_from_this()] { self->RunThread(); });
  started_ = true;
}

// Runs queued work until the stream is closed and empty.
void Stream::RunThread() {
  on_worker_thread = true;
  prctl(PR_SET_NAME, "cuda-stream");
  prctl(PR_SET_TIMERSLACK, 1);  // modelled work sleeps until a point in time
  while (true) {
    SpinFor([this] { return queued_.load(std::memory_order_acquire) != 0; });
    Item item;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return queue_.empty() ? closed_ : !is_running_; });
      if (queue_.empty()) return;
      item = TakeLocked();
    }
    Run(std::move(item));
  }
}

// Runs the next work on the calling thread, which waits for it anyway. Returns false if the work is
// the stream's thread's, or would wait for other streams.
bool Stream::RunNextHere() {
  Item item;
  {
    std::lock_guard lock(mutex_);
    if (is_running_ || queue_.empty()) return false;
    const Item& next = queue_.front();
    if (!next.is_for_any || !next.dependencies.empty()) return false;
    if (issue_queue_ != nullptr && !issue_queue_->IsTurn(next.turn)) return false;
    item = TakeLocked();
  }
  Run(std::move(item));
  return true;
}

// Call with mutex_ held, the queue not empty and no work running.
Stream::Item Stream::TakeLocked() {
  Item item = std::move(queue_.front());
  queue_.pop_front();
  queued_.store(queue_.size(), std::memory_order_release);
  is_running_ = true;
  return item;
}

void Stream::Run(Item item) {
  RunItem(item);
  item = {};  // what the work holds is gone when it counts as done
  Complete();
}

// Waits for the work's turn, then for its dependencies; modelled time begins at the latest of them.
// As in a hardware queue, work that waits holds up what was submitted behind it.
void Stream::RunItem(const Item& item) {
  TimePoint earliest = item.submitted;
  if (issue_queue_ != nullptr && !issue_queue_->IsTurn(item.turn)) {
    issue_queue_->WaitForTurn(item.turn);
    earliest = std::chrono::steady_clock::now();
  }
  for (const Dependency& dependency : item.dependencies) {
    if (dependency.stream->Finished(dependency.sequence)) continue;
    dependency.stream->Wait(dependency.sequence);
    earliest = std::chrono::steady_clock::now();
  }
  if (issue_queue_ != nullptr && !item.holds_queue) issue_queue_->Begin();
  ModelClock::BeginWork(earliest);
  item.work();
  if (issue_queue_ != nullptr && item.holds_queue) issue_queue_->Begin();
  ModelClock::EndWork();
}

// Counts the work as done and wakes waiting threads; the stream's own if another ran the work.
void Stream::Complete() {
  bool has_more = false;
  {
    std::lock_guard lock(mutex_);
    completed_.fetch_add(1, std::memory_order_release);
    is_running_ = false;
    has_more = !queue_.empty();
  }
  if (has_more) changed_.notify_one();
  finished_.notify_all();
}

// Spins before sleeping: most work is short, and waking costs microseconds.
void Stream::Wait(std::uint64_t sequence) {
  while (!on_worker_thread && !Finished(sequence) && RunNextHere()) {
  }
  if (SpinFor([&] { return Finished(sequence); })) return;
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [&] { return Finished(sequence); });
}

void Stream::WaitForRoom(std::uint64_t depth) {
  const std::uint64_t submitted = this->submitted();
  if (submitted >= depth) Wait(submitted - depth + 1);
}

bool Stream::WaitIdleUntil(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return finished_.wait_until(lock, deadline, [this] { return Idle(); });
}

void Stream::set_capture(std::shared_ptr<Capture> capture) {
  std::lock_guard lock(mutex_);
  is_capturing_.store(capture != nullptr, std::memory_order_release);
  capture_ = std::move(capture);
}

bool Stream::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

void Stream::Close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
}

}  // namespace torpor::emulator
