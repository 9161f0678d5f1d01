#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>
#include <vector>

namespace torpor::shim {

// The text that kernels have printed, until a thread writes it to the program's own stream, so that
// the order of the program's and the kernels' output is kept. Thread-safe.
class PrintedOutput {
 public:
  void Add(std::span<const std::uint8_t> text);
  bool IsEmpty() const { return is_empty_.load(std::memory_order_acquire); }
  // Writes all text to `stream`, one thread at a time; may wait for the stream's reader. Add does
  // not wait for Print.
  void Print(std::FILE* stream);

 private:
  std::mutex print_mutex_;  // held while printing; taken before mutex_
  std::mutex mutex_;        // guards text_
  std::vector<std::uint8_t> text_;
  std::atomic<bool> is_empty_{true};
};

}  // namespace torpor::shim
