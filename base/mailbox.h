#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "base/clock.h"

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
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [this] { return closed_ || messages_.size() < capacity_; });
    if (closed_) return false;
    messages_.push_back(std::move(message));
    lock.unlock();
    not_empty_.notify_one();
    return true;
  }

  // Waits for a message. Returns nullopt once the mailbox is closed and empty.
  std::optional<T> Receive() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return closed_ || !messages_.empty(); });
    return TakeLocked(lock);
  }

  // Like Receive, but returns nullopt at `deadline`.
  std::optional<T> ReceiveUntil(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    not_empty_.wait_until(lock, deadline, [this] { return closed_ || !messages_.empty(); });
    return TakeLocked(lock);
  }

  // Refuses new messages and wakes all waiting threads; queued messages can still be received.
  void Close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    not_empty_.notify_all();
    not_full_.notify_all();
  }

 private:
  std::optional<T> TakeLocked(std::unique_lock<std::mutex>& lock) {
    if (messages_.empty()) return std::nullopt;
    std::optional<T> message(std::move(messages_.front()));
    messages_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return message;
  }

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::deque<T> messages_;
  bool closed_ = false;
};

}  // namespace torpor
