#include "server/executor/image/address_scan.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace torpor::executor {
namespace {

// Compares so many words at a time that the compiler vectorizes the loop.
constexpr std::size_t kBlockWords = 64;
using Block = std::array<std::uint64_t, kBlockWords>;

bool HoldsAddress(const Block& block, AddressRange range) {
  bool found = false;
  for (const std::uint64_t word : block) found |= word - range.begin < range.bytes;
  return found;
}

}  // namespace

bool HoldsAddress(std::span<const std::uint8_t> bytes, std::uint64_t address, AddressRange range) {
  const std::size_t before_first_word = -address % sizeof(std::uint64_t);
  bytes = bytes.subspan(std::min(before_first_word, bytes.size()));
  while (bytes.size() >= sizeof(std::uint64_t)) {
    Block block;
    // Fills the last block with a word outside the range.
    block.fill(range.begin - 1);
    const std::size_t taken =
        std::min(bytes.size() / sizeof(std::uint64_t), kBlockWords) * sizeof(std::uint64_t);
    std::memcpy(block.data(), bytes.data(), taken);
    if (HoldsAddress(block, range)) return true;
    bytes = bytes.subspan(taken);
  }
  return false;
}

}  // namespace torpor::executor
