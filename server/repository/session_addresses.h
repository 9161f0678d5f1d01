#pragma once

#include <optional>

#include "base/units.h"
#include "memory/free_blocks.h"

namespace torpor::server {

// Hands out segments of one of the node's address ranges to sessions. Blocks are offsets from the
// begin of the range, in whole segments. A segment has one owner at a time. Give a segment back
// only after the last executor and the client have let go of it. Not thread-safe.
class SessionAddresses {
 public:
  // Covers the whole segments of `bytes`.
  SessionAddresses(Bytes bytes, Bytes segment_bytes);

  // Takes neighbouring segments with room for `bytes` (> 0), or returns nullopt if no room is left
  // in one piece.
  std::optional<memory::Block> Take(Bytes bytes);
  // As Take, but only directly behind `end`, the end of a block in use.
  std::optional<memory::Block> TakeBehind(Bytes end, Bytes bytes);
  // Takes exactly `block`, whole segments. Returns false if a part of the block is not free.
  bool TakeAt(memory::Block block);
  void Release(memory::Block block);

  Bytes segment_bytes() const { return segment_bytes_; }
  Bytes total_bytes() const { return total_bytes_; }
  Bytes free_bytes() const { return free_bytes_; }

 private:
  const Bytes segment_bytes_;
  const Bytes total_bytes_;
  Bytes free_bytes_;
  memory::FreeBlocks free_;
};

}  // namespace torpor::server
