#include "client_shim/core/commands/printed_output.h"

#include <utility>

namespace torpor::shim {

void PrintedOutput::Add(std::span<const std::uint8_t> text) {
  if (text.empty()) return;
  const std::lock_guard lock(mutex_);
  text_.insert(text_.end(), text.begin(), text.end());
  is_empty_.store(false, std::memory_order_release);
}

void PrintedOutput::Print(std::FILE* stream) {
  const std::lock_guard printing(print_mutex_);
  std::unique_lock lock(mutex_);
  const std::vector<std::uint8_t> text = std::exchange(text_, {});
  is_empty_.store(true, std::memory_order_release);
  lock.unlock();
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), stream);
}

}  // namespace torpor::shim
