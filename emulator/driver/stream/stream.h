#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "emulator/driver/stream/capture.h"
#include "emulator/driver/stream/issue_queue.h"

namespace torpor::emulator {

// A queue of work, run in order on a thread of its own that starts with the first queued work.
// Short work on an idle stream runs on the submitting thread, and a thread that waits runs such
// work as any thread may: waking another thread costs more than a small copy. Thread-safe.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  using Work = std::function<void()>;

  // Work of another stream that must have finished first.
  struct Dependency {
    std::shared_ptr<Stream> stream;
    std::uint64_t sequence = 0;
  };

  enum class Placement {
    kQueue,         // may take long: never on the submitting thread
    kForAnyThread,  // as kQueue, but a thread that waits for the stream may run it in its place
    kInlineIfIdle,  // short, or the submitter is going to wait for it anyway
    kWait,          // does nothing but wait: what entered the issue queue behind it waits too
  };

  // With `queue`, which other streams share, work begins in the order of the queue too.
  Stream(unsigned flags, int priority, std::uint64_t id,
         std::shared_ptr<IssueQueue> queue = nullptr)
      : flags_(flags), priority_(priority), id_(id), issue_queue_(std::move(queue)) {}

  unsigned flags() const { return flags_; }
  int priority() const { return priority_; }
  std::uint64_t id() const { return id_; }

  // Runs `work` after `dependencies`. Returns the work's sequence number in the stream, from 1.
  std::uint64_t Submit(Work work, std::vector<Dependency> dependencies, Placement placement);

  std::uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  bool Finished(std::uint64_t sequence) const {
    return completed_.load(std::memory_order_acquire) >= sequence;
  }
  bool Idle() const { return Finished(submitted()); }
  // Waits until less than `depth` pieces of work are unfinished.
  void WaitForRoom(std::uint64_t depth);
  // Runs work kForAnyThread meanwhile, if the calling thread belongs to no stream.
  void Wait(std::uint64_t sequence);
  void WaitIdle() { Wait(submitted()); }
  // Returns false if the stream is not idle by `deadline`.
  bool WaitIdleUntil(std::chrono::steady_clock::time_point deadline);

  // Lets the thread end when the queue is empty. Submit must not be called afterwards.
  void Close();
  bool closed() const;

  // The capture that takes the stream's work now; null if the work is done.
  std::shared_ptr<Capture> capture() const {
    if (!is_capturing_.load(std::memory_order_acquire)) return nullptr;
    std::lock_guard lock(mutex_);
    return capture_;
  }
  void set_capture(std::shared_ptr<Capture> capture);

  // Whether work of this stream failed, or was dropped after a fault.
  bool saw_fault() const { return saw_fault_.load(std::memory_order_acquire); }
  void NoteFault() { saw_fault_.store(true, std::memory_order_release); }

  // Whether the calling thread belongs to a stream.
  static bool OnWorkerThread();

 private:
  struct Item {
    Work work;
    std::vector<Dependency> dependencies;
    TimePoint submitted;
    std::uint64_t turn = 0;    // in the issue queue
    bool holds_queue = false;  // until the work has ended
    bool is_for_any = false;   // Placement::kForAnyThread
  };

  void StartThreadLocked();
  void RunThread();
  bool RunNextHere();
  Item TakeLocked();
  void Run(Item item);
  void RunItem(const Item& item);
  void Complete();

  const unsigned flags_;
  const int priority_;
  const std::uint64_t id_;
  const std::shared_ptr<IssueQueue> issue_queue_;
  std::atomic<bool> saw_fault_{false};
  std::atomic<bool> is_capturing_{false};

  std::mutex submit_mutex_;  // orders submitters; held while work runs inline
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> completed_{0};

  mutable std::mutex mutex_;          // guards what follows
  std::condition_variable changed_;   // for the stream's thread
  std::condition_variable finished_;  // for those who wait
  std::deque<Item> queue_;
  std::atomic<std::size_t> queued_{0};  // queue_.size(), for spinning
  std::shared_ptr<Capture> capture_;
  bool is_running_ = false;  // an item of the queue, by whichever thread
  bool started_ = false;
  bool closed_ = false;
};

}  // namespace torpor::emulator
