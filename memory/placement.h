#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "memory/free_blocks.h"

namespace torpor::memory {

// The owner of a block. Blocks of one owner come and go together.
using Owner = SessionId;

// A request for a block. `alignment` is a power of two.
struct BlockRequest {
  Owner owner;
  Bytes bytes = 0;
  Bytes alignment = 1;
};

// A live block and its place, which is at least as large as requested.
struct PlacedBlock {
  BlockRequest request;
  Block place;
  bool may_move = true;  // by a plan of moves
};

// A copy of a block's bytes from [from, from + bytes) to [to, to + bytes), without overlap.
struct Move {
  Owner owner;
  Bytes from = 0;
  Bytes to = 0;
  Bytes bytes = 0;
  friend bool operator==(const Move&, const Move&) = default;
};

// A strategy that chooses places for blocks in an arena of GPU memory [0, capacity). An
// ArenaAllocator owns one and keeps the blocks. Deterministic; not thread-safe.
class Placement {
 public:
  virtual ~Placement() = default;

  // Takes a free place for the block. Returns nullopt if there is no room.
  virtual std::optional<Block> Take(const BlockRequest& request) = 0;
  // Takes the place at `offset` if Take could have chosen the place for this block. Returns nullopt
  // otherwise, or if the place is not free.
  virtual std::optional<Block> TakeAt(const BlockRequest& request, Bytes offset) = 0;
  // Frees a place that Take or TakeAt returned for the same request.
  virtual void Release(const BlockRequest& request, const Block& place) = 0;

  virtual Bytes capacity() const = 0;
  // Bytes outside of partitions and pools, and bytes inside without a block.
  virtual Bytes free_bytes() const = 0;
  virtual Bytes cached_bytes() const = 0;
  // Size of the largest block for which there is room.
  virtual Bytes largest_request() const = 0;

  // Plans moves of at most `max_bytes` in sum that bring free memory together. `blocks`, ascending,
  // are all blocks with places. Every `to` is free now, so that the moves can be carried out in
  // order while no other block is taken. The moves out of one partition are consecutive; among them
  // one partition fewer may be free. If `max_bytes` is too little to finish, free memory may be in
  // smaller pieces until later plans are carried out.
  virtual std::vector<Move> PlanMoves(const std::vector<PlacedBlock>& blocks, Bytes max_bytes) = 0;
};

}  // namespace torpor::memory
