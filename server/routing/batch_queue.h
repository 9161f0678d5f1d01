#pragma once

#include <cstddef>
#include <utility>

namespace torpor::server {

// The messages that one side of a stream has to write. Messages that come while a batch is being
// written make up the next batch: so a busy stream costs little a message. Not thread-safe.
template <typename Batch, typename Message>
class BatchQueue {
 public:
  // Maximum of messages that wait: a peer beyond does not read any more.
  static constexpr int kMaxWaiting = 1 << 16;

  // Returns whether the caller has to write batch() now.
  bool Add(Message message) {
    *next_.add_messages() = std::move(message);
    return !is_writing_ && Begin();
  }
  // batch() was written. Returns whether the caller has to write the next one now.
  bool OnWritten() {
    is_writing_ = false;
    return next_.messages_size() > 0 && Begin();
  }

  // Constant until OnWritten.
  const Batch& batch() const { return current_; }
  bool is_writing() const { return is_writing_; }
  bool IsFull() const { return next_.messages_size() >= kMaxWaiting; }

 private:
  bool Begin() {
    current_.Swap(&next_);
    next_.Clear();
    return is_writing_ = true;
  }

  Batch current_;
  Batch next_;
  bool is_writing_ = false;
};

}  // namespace torpor::server
