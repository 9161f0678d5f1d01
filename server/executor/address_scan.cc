#include "server/executor/address_scan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace torpor::executor {
namespace {

// Words at a time: enough for the compiler to compare them side by side.
constexpr std::size_t kBlockWords = 64;
using Block = std::array<std::uint64_t, kBlockWords>;

// Whether a word may be below `limit` once `base` is subtracted.
bool MayHold(const Block& block, std::uint64_t base, std::uint64_t limit) {
  bool found = false;
  for (const std::uint64_t word : block) found |= word - base < limit;
  return found;
}

bool Holds(const Block& block, std::uint64_t base, const memory::ExtentSet& memory) {
  return std::ranges::any_of(block, [&](std::uint64_t word) {
    const std::uint64_t offset = word - base;
    return offset + 1 != 0 && memory.Contains({offset, offset + 1});
  });
}

}  // namespace

bool HoldsAddress(std::span<const std::uint8_t> bytes, std::uint64_t base,
                  const memory::ExtentSet& memory) {
  const std::vector<memory::Extent> extents = memory.extents();
  if (extents.empty()) return false;
  const std::uint64_t limit = extents.back().end;
  while (bytes.size() >= sizeof(std::uint64_t)) {
    Block block;
    // The last one is filled up with a word that is no address of these.
    block.fill(base - 1);
    const std::size_t taken =
        std::min(bytes.size() / sizeof(std::uint64_t), kBlockWords) * sizeof(std::uint64_t);
    std::memcpy(block.data(), bytes.data(), taken);
    if (MayHold(block, base, limit) && Holds(block, base, memory)) return true;
    bytes = bytes.subspan(taken);
  }
  return false;
}

}  // namespace torpor::executor
