#include "memory/free_blocks.h"

#include <iterator>

namespace torpor::memory {

Block FreeBlocks::Add(Block block) {
  const auto next = by_offset_.lower_bound(block.offset);
  if (next != by_offset_.begin()) {
    const auto [offset, bytes] = *std::prev(next);
    if (offset + bytes == block.offset && MayJoin(block.offset)) {
      Remove({offset, bytes});
      block = {offset, bytes + block.bytes};
    }
  }
  if (next != by_offset_.end() && block.end() == next->first && MayJoin(next->first)) {
    const Block joined = {next->first, next->second};
    Remove(joined);
    block.bytes += joined.bytes;
  }
  by_offset_.emplace(block.offset, block.bytes);
  by_size_.emplace(block.bytes, block.offset);
  return block;
}

void FreeBlocks::Remove(Block block) {
  by_offset_.erase(block.offset);
  by_size_.erase({block.bytes, block.offset});
}

std::optional<Block> FreeBlocks::Take(Bytes bytes, Bytes alignment) {
  for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end(); ++it) {
    const Block whole = {it->second, it->first};
    const Bytes begin = RoundUp(whole.offset, alignment);
    if (begin > whole.end() || whole.end() - begin < bytes) continue;
    const Block taken = {begin, bytes};
    Cut(whole, taken);
    return taken;
  }
  return std::nullopt;
}

bool FreeBlocks::TakeAt(Block block) {
  const auto after = by_offset_.upper_bound(block.offset);
  if (after == by_offset_.begin()) return false;
  const auto [offset, bytes] = *std::prev(after);
  if (offset + bytes < block.end()) return false;
  Cut({offset, bytes}, block);
  return true;
}

void FreeBlocks::Cut(Block whole, Block inner) {
  Remove(whole);
  if (inner.offset > whole.offset) Add({whole.offset, inner.offset - whole.offset});
  if (inner.end() < whole.end()) Add({inner.end(), whole.end() - inner.end()});
}

std::optional<Block> FreeBlocks::smallest() const {
  if (by_size_.empty()) return std::nullopt;
  return Block{by_size_.begin()->second, by_size_.begin()->first};
}

std::vector<Block> FreeBlocks::blocks() const {
  std::vector<Block> all;
  all.reserve(by_offset_.size());
  for (const auto& [offset, bytes] : by_offset_) all.push_back({offset, bytes});
  return all;
}

}  // namespace torpor::memory
