#include "server/executor/image/address_table.h"

#include "memory/range_allocator.h"

namespace torpor::executor {

AddressTable::AddressTable(std::uint64_t version, const std::vector<BackedPart>& blocks)
    : version_(version) {
  begins_.reserve(blocks.size());
  blocks_.reserve(blocks.size());
  for (const BackedPart& block : blocks) {
    begins_.push_back(block.extent.begin);
    blocks_.push_back({block.extent.bytes() + memory::RangeAllocator::kGuard, block.address});
  }
}

CUdeviceptr AddressTable::Translate(Bytes offset) const {
  if (begins_.empty()) return 0;
  // Finds the last block that begins at or before `offset`, else the first. Branch-free, because
  // the direction of each step is unpredictable.
  const Bytes* found = begins_.data();
  for (std::size_t left = begins_.size(); left > 1;) {
    const std::size_t half = left / 2;
    found = found[half] <= offset ? found + half : found;
    left -= half;
  }
  const Block& block = blocks_[static_cast<std::size_t>(found - begins_.data())];
  // Huge where `offset` is before the block.
  const Bytes from_begin = offset - *found;
  return from_begin < block.reach ? block.address + from_begin : 0;
}

}  // namespace torpor::executor
