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
  Bytes used = 0;     // requested by live blocks
  Bytes padding = 0;  // behind the requested bytes, in the places of live blocks
  Bytes moving = 0;   // held by moves under way beside the places of live blocks
  Bytes cached = 0;   // in partitions or a pool, but in no block
  Bytes free = 0;
  Bytes largest_request = 0;  // size of the largest block that can be allocated now

  // Bytes that are not taken, but that one request for all of them would not get.
  Bytes fragmented() const { return cached + free - largest_request; }
};

// An arena of GPU memory [0, capacity): hands out blocks to owners and accounts for every byte.
// The placement chooses where blocks lie. A block is named by its offset. Pure bookkeeping without
// I/O, deterministic; not thread-safe.
//
// Moves: the caller carries out a plan's moves one at a time: begin, copy the bytes, commit. From
// begin on both the old and the new place are held, so that other blocks may come and go during the
// copy. A plan may be abandoned after any of its moves, and a move before its commit. A partition
// that an abandoned plan has half emptied is not free, nor is the partition that received blocks.
class ArenaAllocator {
 public:
  explicit ArenaAllocator(std::unique_ptr<Placement> placement);

  // Returns the offset of a place for `bytes` (> 0) at a multiple of `alignment` (a power of two),
  // or nullopt if there is no room.
  std::optional<Bytes> Allocate(Owner owner, Bytes bytes, Bytes alignment);
  // Frees the block that begins at `offset`. Returns false if there is no such block.
  bool Free(Bytes offset);
  // Frees all blocks of the owner. Returns the bytes that the owner had requested.
  Bytes FreeAll(Owner owner);

  // Returns the live block that begins at `offset`.
  std::optional<PlacedBlock> Find(Bytes offset) const;
  // Returns the owner's blocks, in the order of allocation as long as none was freed.
  std::vector<PlacedBlock> BlocksOf(Owner owner) const;
  std::vector<PlacedBlock> AllBlocks() const;  // by offset
  Bytes used_by(Owner owner) const;
  std::size_t block_count() const { return blocks_.size(); }
  ArenaUse use() const;

  // As Placement::PlanMoves; empty while a move is under way. With `may_move`, only blocks for
  // which `may_move` returns true are moved.
  std::vector<Move> PlanMoves(Bytes max_bytes,
                              const std::function<bool(const PlacedBlock&)>& may_move = {});
  // Holds the place at `move.to`. Returns false if the block is gone or already moving, or if the
  // place was taken after the plan was made.
  bool BeginMove(const Move& move);
  // Ends the move that began at `from` once the bytes are copied. Returns true if the block is now
  // at `to` and its old place free; false if the block was freed meanwhile and both places are
  // free.
  bool CommitMove(Bytes from);
  // Gives up the move that began at `from`. Nothing may write to `to` any more.
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
