#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/units.h"

namespace torpor::memory {

// A piece of some range of addresses, counted from its begin.
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

  // Adds a free piece; returns the whole piece that it became part of.
  Block Add(Block block);
  void Remove(Block block);
  // The smallest piece (the lowest of those) that holds `bytes` at a multiple of `alignment`, cut
  // out. O(log n) where `alignment` is that of all pieces.
  std::optional<Block> Take(Bytes bytes, Bytes alignment);
  // Cuts out exactly `block`; false where not all of it is free.
  bool TakeAt(Block block);

  // The largest piece; 0 bytes where nothing is free.
  Bytes largest_bytes() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }
  // The smallest piece, the lowest of those.
  std::optional<Block> smallest() const;
  std::vector<Block> blocks() const;  // in address order

 private:
  bool MayJoin(Bytes at) const { return boundary_ == 0 || at % boundary_ != 0; }
  // `inner` is no longer free, the rest of `whole` is.
  void Cut(Block whole, Block inner);

  const Bytes boundary_;
  std::map<Bytes, Bytes> by_offset_;
  std::set<std::pair<Bytes, Bytes>> by_size_;  // (bytes, offset)
};

}  // namespace torpor::memory
