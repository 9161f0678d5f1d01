#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace torpor {

// A bounded FIFO queue between threads, for any number of senders and receivers. Thread-safe.
template <typename T>
class Mailbox {
 public:
  explicit Mailbox(std::size_t capacity) : capacity_(capacity) {}
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Waits while the mailbox is full. Returns false and drops `message` once the mailbox is closed.
  bool Send(T message) {
    MutexLock lock(&mutex_);
    while (!closed_ && messages_.size() >= capacity_) {
      mutex_.WaitFor(not_full_, absl::InfiniteDuration());
    }
    if (closed_) return false;
    messages_.push_back(std::move(message));
    not_empty_.Signal();
    return true;
  }

  // Waits for a message. Returns nullopt once the mailbox is closed and empty.
  std::optional<T> Receive() { return ReceiveUntil(TimePoint::max()); }

  // Like Receive, but returns nullopt at `deadline`.
  std::optional<T> ReceiveUntil(TimePoint deadline) {
    MutexLock lock(&mutex_);
    while (!closed_ && messages_.empty()) {
      const Duration left = deadline - TimePoint::clock::now();
      if (left <= Duration::zero()) break;
      mutex_.WaitFor(not_empty_, absl::FromChrono(left));
    }
    if (messages_.empty()) return std::nullopt;
    std::optional<T> message(std::move(messages_.front()));
    messages_.pop_front();
    not_full_.Signal();
    return message;
  }

  // Refuses new messages and wakes all waiting threads; queued messages can still be received.
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
    not_empty_.SignalAll();
    not_full_.SignalAll();
  }

 private:
  const std::size_t capacity_;
  Mutex mutex_;
  absl::CondVar not_empty_;
  absl::CondVar not_full_;
  std::deque<T> messages_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace torpor
