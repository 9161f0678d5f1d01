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
    const auto has_room = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return closed_ || messages_.size() < capacity_;
    };
    MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&has_room), absl::InfiniteDuration());
    if (closed_) return false;
    messages_.push_back(std::move(message));
    return true;
  }

  // Waits for a message. Returns nullopt once the mailbox is closed and empty.
  std::optional<T> Receive() { return ReceiveWithin(absl::InfiniteDuration()); }

  // Like Receive, but returns nullopt at `deadline`.
  std::optional<T> ReceiveUntil(TimePoint deadline) {
    return ReceiveWithin(absl::FromChrono(deadline - TimePoint::clock::now()));
  }

  // Refuses new messages and wakes all waiting threads; queued messages can still be received.
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
  }

 private:
  std::optional<T> ReceiveWithin(absl::Duration timeout) {
    const auto is_settled = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return closed_ || !messages_.empty();
    };
    MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&is_settled), timeout);
    if (messages_.empty()) return std::nullopt;
    std::optional<T> message(std::move(messages_.front()));
    messages_.pop_front();
    return message;
  }

  const std::size_t capacity_;
  Mutex mutex_;
  std::deque<T> messages_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace torpor
