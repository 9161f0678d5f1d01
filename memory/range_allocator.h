#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "memory/free_blocks.h"

namespace torpor::memory {

// Hands out pieces of a session's address range [0, range_bytes) and counts the chunks that they
// touch, which is what the image occupies on a GPU. Small pieces share chunks of their own, so
// that a long-lived small one does not keep a chunk of a large one occupied. Pure bookkeeping;
// not thread-safe.
class RangeAllocator {
 public:
  static constexpr Bytes kAlignment = 512;
  static constexpr Bytes kSmallBytes = 1 * kMiB;  // pieces below this are small
  static constexpr Bytes kGuard = 64 * kKiB;

  enum class Layout {
    kDense,
    // Chunks that can lie apart on a GPU: each is of one large piece, or of small ones only. The
    // kGuard bytes behind a large piece, and behind a chunk's last small one, are nobody's, so that
    // an address there is told to be of what is before it.
    kApart,
  };

  // Both are multiples of kAlignment, chunks of kApart several kGuard; range_bytes is a multiple of
  // chunk_bytes.
  RangeAllocator(Bytes range_bytes, Bytes chunk_bytes, Layout layout = Layout::kDense);

  // A piece of at least `bytes` (> 0; rounded up to kAlignment). Nothing where no room is left.
  std::optional<Block> Allocate(Bytes bytes);

  // The piece that was handed out at `offset`, now free; nothing if none was.
  std::optional<Block> Free(Bytes offset);

  // The live piece that begins at `offset`.
  std::optional<Block> Find(Bytes offset) const;

  // What all live pieces amount to, each rounded up to kAlignment.
  Bytes live_bytes() const { return live_bytes_; }
  std::size_t live_count() const { return live_.size(); }

  // The chunks that live pieces touch.
  Bytes occupied_bytes() const { return occupied_chunks_ * chunk_bytes_; }

  // Live pieces in address order.
  std::vector<Block> Blocks() const;
  // The same, neighbours joined. More than `max_blocks` become whole chunks; where they lie apart
  // only small ones do, chunk by chunk.
  std::vector<Block> LiveBlocks(std::size_t max_blocks) const;
  // Of the chunks that `freed`, a piece just freed, had a part in, those without a live piece now:
  // neighbours of each other. 0 bytes where there are none.
  Block EmptiedChunks(Block freed) const;
  // The chunks that live pieces touch, neighbours joined.
  std::vector<Block> OccupiedBlocks() const;

 private:
  std::optional<Block> TakeSmall(Bytes bytes);
  std::optional<Block> TakeLarge(Bytes bytes);
  bool IsSmall(Bytes bytes) const { return bytes < small_below_; }
  // What a large piece keeps from others.
  Block RoomOf(Block piece) const;
  std::vector<Block> BlocksApart() const;
  void Touch(Block block, bool is_live);

  const Bytes range_bytes_;
  const Bytes chunk_bytes_;
  const Layout layout_;
  const Bytes small_below_;
  const Bytes slab_bytes_;  // of a chunk that small pieces share
  FreeBlocks large_free_;
  FreeBlocks small_free_;  // in chunks taken from large_free_
  std::map<Bytes, Bytes> live_;
  std::vector<std::uint32_t> chunk_users_;
  Bytes live_bytes_ = 0;
  Bytes occupied_chunks_ = 0;
};

}  // namespace torpor::memory
