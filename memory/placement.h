#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "memory/free_blocks.h"

namespace torpor::memory {

// Whose a block is: blocks of one owner come and go together.
using Owner = SessionId;

// What a block was asked for with. `alignment` is a power of two.
struct BlockRequest {
  Owner owner;
  Bytes bytes = 0;
  Bytes alignment = 1;
};

// A live block and the place that it occupies, at least as large as asked.
struct PlacedBlock {
  BlockRequest request;
  Block place;
  bool may_move = true;  // by a plan of moves
};

// A block's bytes [from, from + bytes) are to be at [to, to + bytes), which does not overlap.
struct Move {
  Owner owner;
  Bytes from = 0;
  Bytes to = 0;
  Bytes bytes = 0;
  friend bool operator==(const Move&, const Move&) = default;
};

// Where blocks lie in an arena of GPU memory [0, capacity): a way of choosing places, below an
// ArenaAllocator, which knows the blocks. Deterministic; not thread-safe.
class Placement {
 public:
  virtual ~Placement() = default;

  // A place for the block, all of it free until now; nothing where there is none.
  virtual std::optional<Block> Take(const BlockRequest& request) = 0;
  // The place that begins at `offset`, if it is one that the block could have been given; nothing
  // where it is not free or not such a place.
  virtual std::optional<Block> TakeAt(const BlockRequest& request, Bytes offset) = 0;
  // Frees exactly what one of the above took for the same block.
  virtual void Release(const BlockRequest& request, const Block& place) = 0;

  virtual Bytes capacity() const = 0;
  // What belongs to no partition or pool; what does and holds no block.
  virtual Bytes free_bytes() const = 0;
  virtual Bytes cached_bytes() const = 0;
  // The largest block for which there is a place.
  virtual Bytes largest_request() const = 0;

  // Moves of at most `max_bytes` in sum that bring free memory together; where that is too little
  // to finish with, less may be free in one piece until later plans have. `blocks`, ascending, are
  // all that hold places. Every `to` is free now, so the moves can be carried out in their order
  // while nothing else is taken. Those out of one partition follow each other: between them one
  // partition fewer may be free.
  virtual std::vector<Move> PlanMoves(const std::vector<PlacedBlock>& blocks, Bytes max_bytes) = 0;
};

}  // namespace torpor::memory
