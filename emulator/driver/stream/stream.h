#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"

namespace torpor::emulator {

// A queue of work, run in order on a thread of its own that starts with the first queued work.
// Short work on an idle stream runs on the submitting thread: waking another thread costs more than
// a small copy. Thread-safe.
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
    kInlineIfIdle,  // short, or the submitter is going to wait for it anyway
  };

  Stream(unsigned flags, int priority, std::uint64_t id)
      : flags_(flags), priority_(priority), id_(id) {}

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
  void Wait(std::uint64_t sequence);
  void WaitIdle() { Wait(submitted()); }
  // Returns false if the stream is not idle by `deadline`.
  bool WaitIdleUntil(std::chrono::steady_clock::time_point deadline);

  // Lets the thread end when the queue is empty. Submit must not be called afterwards.
  void Close();
  bool closed() const;

  // Whether the calling thread belongs to a stream.
  static bool OnWorkerThread();

 private:
  struct Item {
    Work work;
    std::vector<Dependency> dependencies;
    TimePoint submitted;
  };

  void StartThreadLocked();
  void RunThread();
  static void RunItem(const Item& item);
  void Complete();

  const unsigned flags_;
  const int priority_;
  const std::uint64_t id_;

  std::mutex submit_mutex_;  // orders submitters; held while work runs inline
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> completed_{0};

  mutable std::mutex mutex_;          // guards what follows
  std::condition_variable changed_;   // for the thread
  std::condition_variable finished_;  // for those who wait
  std::deque<Item> queue_;
  std::atomic<std::size_t> queued_{0};  // queue_.size(), for spinning
  bool started_ = false;
  bool closed_ = false;
};

}  // namespace torpor::emulator
