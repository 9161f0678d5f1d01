#pragma once

#include <chrono>
#include <cstddef>

namespace torpor::shim {

// Learns after how many calls a batch should leave, from the program's rhythm and the cost of
// sending. A short batch lets the GPU begin early; a long batch spreads the cost of sending. So a
// batch is as short as it can be with that cost at most kSendingShare of the time in which the
// program makes the calls. Not thread-safe.
class BatchRhythm {
 public:
  using Span = std::chrono::nanoseconds;

  // Where the profile of batch sizes (docs/shim.md, "Batches") is flat and lowest.
  static constexpr std::size_t kFirstCalls = 16;
  static constexpr std::size_t kMinCalls = 8;
  static constexpr std::size_t kMaxCalls = 4096;
  static constexpr double kSendingShare = 0.02;

  // The present answer.
  std::size_t calls() const { return calls_; }
  // The program filled a batch of `calls` in `filling`, and sending the batch took `sending`.
  void Note(std::size_t calls, Span filling, Span sending);

 private:
  std::size_t calls_ = kFirstCalls;
  double ns_per_call_ = 0;  // 0: nothing was noted
  double sending_ns_ = 0;
};

}  // namespace torpor::shim
