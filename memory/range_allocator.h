#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "memory/free_blocks.h"

namespace torpor::memory {

// Hands out pieces of a session's addresses, which are one range or several, and counts the chunks
// that live pieces touch: the memory that the image occupies on a GPU. Small pieces share separate
// chunks, so that a long-lived small piece does not keep a large piece's chunk occupied. Pure
// bookkeeping without I/O; not thread-safe.
class RangeAllocator {
 public:
  static constexpr Bytes kAlignment = 512;
  static constexpr Bytes kSmallBytes = 1 * kMiB;  // pieces below this are small
  static constexpr Bytes kGuard = 64 * kKiB;

  enum class Layout {
    kDense,
    // Chunks can lie apart on a GPU: each belongs to one large piece or to small pieces only. The
    // kGuard bytes behind a large piece, and behind a chunk's last small piece, stay unused, so
    // that an address there can be attributed to the piece before.
    kApart,
  };

  // Has no addresses yet. `chunk_bytes` is a multiple of kAlignment. For kApart, a chunk is several
  // times kGuard.
  explicit RangeAllocator(Bytes chunk_bytes, Layout layout = Layout::kDense);
  // Has the addresses [0, range_bytes).
  RangeAllocator(Bytes range_bytes, Bytes chunk_bytes, Layout layout = Layout::kDense);

  // Adds whole chunks of addresses. The range overlaps no earlier range; pieces may lie across
  // neighbouring ranges.
  void AddRange(Block range);
  // Returns the bytes that a range needs so that a piece of `bytes` fits if nothing else is free.
  Bytes RoomFor(Bytes bytes) const;

  // Returns a piece of `bytes` (> 0), rounded up to kAlignment, or nullopt if there is no room.
  std::optional<Block> Allocate(Bytes bytes);

  // Takes exactly `piece`, as Allocate has returned it from an earlier allocator of the same ranges
  // and chunks. Returns false if a part of the piece is not free.
  bool AllocateAt(Block piece);

  // Frees and returns the piece that begins at `offset`, or nullopt if there is no such piece.
  std::optional<Block> Free(Bytes offset);

  // Returns the live piece that begins at `offset`.
  std::optional<Block> Find(Bytes offset) const;

  // Sum of all live pieces, each rounded up to kAlignment.
  Bytes live_bytes() const { return live_bytes_; }
  std::size_t live_count() const { return live_.size(); }

  Bytes chunk_bytes() const { return chunk_bytes_; }
  Layout layout() const { return layout_; }
  // Size of the chunks that live pieces touch.
  Bytes occupied_bytes() const { return occupied_chunks_ * chunk_bytes_; }

  // Returns live pieces in address order.
  std::vector<Block> Blocks() const;
  // Likewise, with neighbours joined. Rounds to whole chunks if there are more than `max_blocks`;
  // with kApart only small pieces, chunk by chunk.
  std::vector<Block> LiveBlocks(std::size_t max_blocks) const;
  // Returns the chunks that the piece `freed` touched and that no live piece touches now: one run
  // of neighbours, of 0 bytes if there are none.
  Block EmptiedChunks(Block freed) const;
  // Returns the chunks that the live piece `piece` touches and no other one does: likewise one run.
  Block OwnChunks(Block piece) const;
  // Returns the chunks that live pieces touch, with neighbours joined.
  std::vector<Block> OccupiedBlocks() const;

 private:
  std::optional<Block> TakeSmall(Bytes bytes);
  std::optional<Block> TakeLarge(Bytes bytes);
  bool TakeSmallAt(Block piece);
  // The piece is live from now on.
  void Add(Block piece);
  bool IsSmall(Bytes bytes) const { return bytes < small_below_; }
  // The range that a large piece keeps free of other pieces.
  Block RoomOf(Block piece) const;
  std::vector<Block> BlocksApart() const;
  void Touch(Block block, bool is_live);
  // Returns the live pieces that touch the chunk, which lies in a range.
  std::uint32_t& UsersOf(Bytes chunk);
  std::uint32_t UsersOf(Bytes chunk) const;
  // Returns the chunks that the piece touches, or touched, without those of more than `users` live
  // pieces: one run, since other pieces can touch the first and the last of the chunks only.
  Block ChunksOf(Block piece, std::uint32_t users) const;

  const Bytes chunk_bytes_;
  const Layout layout_;
  const Bytes small_below_;
  const Bytes slab_bytes_;  // of a chunk that small pieces share
  FreeBlocks large_free_;
  FreeBlocks small_free_;  // in chunks taken from large_free_
  std::map<Bytes, Bytes> live_;
  std::map<Bytes, std::vector<std::uint32_t>> chunk_users_;  // by the first chunk of a range
  Bytes live_bytes_ = 0;
  Bytes occupied_chunks_ = 0;
};

}  // namespace torpor::memory
