#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "memory/placement.h"

namespace torpor::memory {

// What an arena's memory is used for. used + padding + moving + cached + free is the capacity.
struct ArenaUse {
  Bytes capacity = 0;
  Bytes used = 0;     // asked for by live blocks
  Bytes padding = 0;  // in live blocks' places behind what was asked for
  Bytes moving = 0;   // held by moves under way beside the places of live blocks
  Bytes cached = 0;   // in partitions or a pool, but no block's
  Bytes free = 0;
  Bytes largest_request = 0;  // the largest block that could be had now

  // What a request for all that is not taken would not get.
  Bytes fragmented() const { return cached + free - largest_request; }
};

// An arena of GPU memory [0, capacity): hands out blocks to owners and accounts for every byte.
// Where blocks lie is the placement's choice. A block is named by its offset. Pure bookkeeping,
// deterministic; not thread-safe.
//
// Moves: a plan's moves are carried out one at a time: begin, copy the bytes, commit. From begin
// on the old and the new place are both held, so copying may take its time while blocks come and
// go; a plan may be abandoned after any of its moves, and a move before it is committed. A
// partition that such a plan has emptied by half is not free, nor is the one that it went to.
class ArenaAllocator {
 public:
  explicit ArenaAllocator(std::unique_ptr<Placement> placement);

  // The begin of a place for `bytes` (> 0) at a multiple of `alignment` (a power of two); nothing
  // where there is none.
  std::optional<Bytes> Allocate(Owner owner, Bytes bytes, Bytes alignment);
  // The block that begins at `offset` is gone; false if there is none.
  bool Free(Bytes offset);
  // All blocks of the owner are gone. Gives what had been asked for in them.
  Bytes FreeAll(Owner owner);

  std::optional<PlacedBlock> Find(Bytes offset) const;
  // In the order in which they were allocated, if none of them has been freed.
  std::vector<PlacedBlock> BlocksOf(Owner owner) const;
  std::vector<PlacedBlock> AllBlocks() const;  // by offset
  Bytes used_by(Owner owner) const;
  std::size_t block_count() const { return blocks_.size(); }
  ArenaUse use() const;

  // As Placement::PlanMoves; nothing while a move is under way. Where `may_move` is given, only
  // blocks move of which it says so.
  std::vector<Move> PlanMoves(Bytes max_bytes,
                              const std::function<bool(const PlacedBlock&)>& may_move = {});
  // Holds the place at `move.to`. False if there is no such block any more, it is already moving,
  // or what has happened since the plan has taken the place.
  bool BeginMove(const Move& move);
  // The bytes have been copied: the block of the move that began at `from` is now at `to`, and
  // true. False if the block was freed meanwhile. Both places are then free but the block's own.
  bool CommitMove(Bytes from);
  // The bytes are not needed at `to`, and nothing writes there any more.
  void AbandonMove(Bytes from);

 private:
  struct LiveBlock {
    PlacedBlock block;
    std::size_t position = 0;  // in its owner's list
  };
  struct OwnerBlocks {
    std::vector<Bytes> offsets;
    Bytes used = 0;
  };
  struct MoveUnderWay {
    PlacedBlock source;
    Block target;
    bool is_live = true;  // the block has not been freed
  };

  void Insert(const PlacedBlock& block);
  void Erase(const LiveBlock& live);

  const std::unique_ptr<Placement> placement_;
  std::unordered_map<Bytes, LiveBlock> blocks_;  // by offset
  std::unordered_map<Owner, OwnerBlocks> owners_;
  std::unordered_map<Bytes, MoveUnderWay> moves_;  // by the source's offset
  Bytes used_ = 0;
  Bytes placed_ = 0;  // the places of live blocks
  Bytes moving_ = 0;
};

}  // namespace torpor::memory
