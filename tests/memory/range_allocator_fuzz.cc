#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "tests/memory/range_allocator_model.h"

// Any sequence of allocations and frees keeps the allocator's invariants.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using torpor::Bytes;
  constexpr Bytes kRange = 32 * torpor::kMiB;
  constexpr Bytes kChunk = 2 * torpor::kMiB;
  using Layout = torpor::memory::RangeAllocator::Layout;
  const Layout layout = size % 2 == 0 ? Layout::kDense : Layout::kApart;
  torpor::memory::RangeAllocator allocator(kRange, kChunk, layout);
  torpor::memory::RangeAllocatorModel model(kRange, kChunk);
  for (; size >= 4; data += 4, size -= 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, data, sizeof word);
    const Bytes value = word >> 1;
    if (word % 2 == 0) {
      const auto block = allocator.Allocate(value);
      if (block && !model.OnAllocated(value, *block).empty()) std::abort();
      continue;
    }
    const bool is_live = model.live().count(value) > 0;
    if (allocator.Free(value).has_value() != is_live) std::abort();
    model.OnFreed(value);
    if (model.live().empty()) continue;
    const auto some =
        std::next(model.live().begin(), static_cast<std::ptrdiff_t>(value % model.live().size()));
    const Bytes offset = some->first;
    if (!allocator.Free(offset)) std::abort();
    model.OnFreed(offset);
  }
  if (!model.Compare(allocator).empty()) std::abort();
  return 0;
}
