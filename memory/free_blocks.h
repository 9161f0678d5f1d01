#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/units.h"

namespace torpor::memory {

// A piece of an address range, counted from the range's begin.
struct Block {
  Bytes offset = 0;
  Bytes bytes = 0;

  Bytes end() const { return offset + bytes; }
  friend bool operator==(const Block&, const Block&) = default;
};

// Free pieces of a range, in address order and in order of size. Neighbours coalesce, except
// across multiples of `boundary` (0: everywhere). Not thread-safe.
class FreeBlocks {
 public:
  explicit FreeBlocks(Bytes boundary) : boundary_(boundary) {}

  // Adds a piece, none of which is free yet. Returns the whole piece after coalescing.
  Block Add(Block block);
  void Remove(Block block);
  // Cuts `bytes` at a multiple of `alignment` out of the smallest piece with room (the lowest of
  // equally small pieces). Returns nullopt if no piece has room. O(log n) if all pieces are aligned
  // to `alignment`.
  std::optional<Block> Take(Bytes bytes, Bytes alignment);
  // Cuts out exactly `block`. Returns false if a part of `block` is not free.
  bool TakeAt(Block block);

  // Size of the largest piece; 0 if nothing is free.
  Bytes largest_bytes() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }
  // Returns the lowest of the smallest pieces.
  std::optional<Block> smallest() const;
  std::vector<Block> blocks() const;  // in address order

 private:
  bool MayJoin(Bytes at) const { return boundary_ == 0 || at % boundary_ != 0; }
  // Takes `inner` out of the free piece `whole`.
  void Cut(Block whole, Block inner);

  const Bytes boundary_;
  std::map<Bytes, Bytes> by_offset_;
  std::set<std::pair<Bytes, Bytes>> by_size_;  // (bytes, offset)
};

}  // namespace torpor::memory
