#include "memory/range_allocator.h"

#include <algorithm>
#include <iterator>

namespace torpor::memory {
namespace {

constexpr Bytes kMaxBytes = Bytes{1} << 56;  // above all address spaces; sums cannot overflow

void Append(std::vector<Block>& blocks, Block block) {
  if (!blocks.empty() && blocks.back().offset + blocks.back().bytes == block.offset) {
    blocks.back().bytes += block.bytes;
  } else {
    blocks.push_back(block);
  }
}

}  // namespace

RangeAllocator::RangeAllocator(Bytes chunk_bytes, Layout layout)
    : chunk_bytes_(chunk_bytes),
      layout_(layout),
      small_below_(std::min(kSmallBytes, chunk_bytes)),
      slab_bytes_(layout == Layout::kApart ? chunk_bytes - kGuard : chunk_bytes),
      large_free_(0),
      small_free_(chunk_bytes) {}

RangeAllocator::RangeAllocator(Bytes range_bytes, Bytes chunk_bytes, Layout layout)
    : RangeAllocator(chunk_bytes, layout) {
  AddRange({0, range_bytes});
}

void RangeAllocator::AddRange(Block range) {
  chunk_users_[range.offset / chunk_bytes_].resize(range.bytes / chunk_bytes_);
  large_free_.Add(range);
}

Bytes RangeAllocator::RoomFor(Bytes bytes) const {
  bytes = RoundUp(bytes, kAlignment);
  return RoundUp(IsSmall(bytes) ? chunk_bytes_ : RoomOf({0, bytes}).bytes, chunk_bytes_);
}

std::optional<Block> RangeAllocator::Allocate(Bytes bytes) {
  if (bytes == 0 || bytes > kMaxBytes) return std::nullopt;
  bytes = RoundUp(bytes, kAlignment);
  const std::optional<Block> block = IsSmall(bytes) ? TakeSmall(bytes) : TakeLarge(bytes);
  if (block) Add(*block);
  return block;
}

bool RangeAllocator::AllocateAt(Block piece) {
  const bool is_piece = piece.bytes > 0 && piece.bytes <= kMaxBytes && piece.offset <= kMaxBytes &&
                        piece.bytes % kAlignment == 0 && piece.offset % kAlignment == 0;
  if (!is_piece) return false;
  const bool is_free =
      IsSmall(piece.bytes) ? TakeSmallAt(piece) : large_free_.TakeAt(RoomOf(piece));
  if (is_free) Add(piece);
  return is_free;
}

bool RangeAllocator::TakeSmallAt(Block piece) {
  if (small_free_.TakeAt(piece)) return true;
  const Block chunk = {RoundDown(piece.offset, chunk_bytes_), chunk_bytes_};
  const Block slab = {chunk.offset, slab_bytes_};
  if (piece.end() > slab.end() || !large_free_.TakeAt(chunk)) return false;
  small_free_.Add(slab);
  return small_free_.TakeAt(piece);
}

void RangeAllocator::Add(Block piece) {
  live_.emplace(piece.offset, piece.bytes);
  live_bytes_ += piece.bytes;
  Touch(piece, true);
}

std::optional<Block> RangeAllocator::Find(Bytes offset) const {
  const auto found = live_.find(offset);
  if (found == live_.end()) return std::nullopt;
  return Block{found->first, found->second};
}

std::optional<Block> RangeAllocator::Free(Bytes offset) {
  const auto live = live_.find(offset);
  if (live == live_.end()) return std::nullopt;
  const Block block = {live->first, live->second};
  live_.erase(live);
  live_bytes_ -= block.bytes;
  Touch(block, false);
  if (!IsSmall(block.bytes)) {
    large_free_.Add(RoomOf(block));
  } else if (const Block joined = small_free_.Add(block); joined.bytes == slab_bytes_) {
    small_free_.Remove(joined);
    large_free_.Add({joined.offset, chunk_bytes_});
  }
  return block;
}

std::optional<Block> RangeAllocator::TakeSmall(Bytes bytes) {
  if (std::optional<Block> block = small_free_.Take(bytes, kAlignment)) return block;
  const std::optional<Block> chunk = large_free_.Take(chunk_bytes_, chunk_bytes_);
  if (!chunk) return std::nullopt;
  small_free_.Add({chunk->offset, slab_bytes_});
  return small_free_.Take(bytes, kAlignment);
}

std::optional<Block> RangeAllocator::TakeLarge(Bytes bytes) {
  const Bytes alignment = layout_ == Layout::kApart ? chunk_bytes_ : kAlignment;
  const std::optional<Block> room = large_free_.Take(RoomOf({0, bytes}).bytes, alignment);
  if (!room) return std::nullopt;
  return Block{room->offset, bytes};
}

Block RangeAllocator::RoomOf(Block piece) const {
  if (layout_ == Layout::kDense) return piece;
  return {piece.offset, RoundUp(piece.bytes + kGuard, chunk_bytes_)};
}

void RangeAllocator::Touch(Block block, bool is_live) {
  const Bytes last = (block.offset + block.bytes - 1) / chunk_bytes_;
  for (Bytes chunk = block.offset / chunk_bytes_; chunk <= last; ++chunk) {
    std::uint32_t& users = UsersOf(chunk);
    if (is_live) {
      if (users++ == 0) ++occupied_chunks_;
    } else if (--users == 0) {
      --occupied_chunks_;
    }
  }
}

std::vector<Block> RangeAllocator::Blocks() const {
  std::vector<Block> blocks;
  blocks.reserve(live_.size());
  for (const auto& [offset, bytes] : live_) blocks.push_back({offset, bytes});
  return blocks;
}

std::uint32_t& RangeAllocator::UsersOf(Bytes chunk) {
  const auto range = std::prev(chunk_users_.upper_bound(chunk));
  return range->second[chunk - range->first];
}

std::uint32_t RangeAllocator::UsersOf(Bytes chunk) const {
  const auto range = std::prev(chunk_users_.upper_bound(chunk));
  return range->second[chunk - range->first];
}

std::vector<Block> RangeAllocator::LiveBlocks(std::size_t max_blocks) const {
  std::vector<Block> blocks;
  for (const auto& [offset, bytes] : live_) {
    Append(blocks, {offset, bytes});
    if (blocks.size() <= max_blocks) continue;
    return layout_ == Layout::kApart ? BlocksApart() : OccupiedBlocks();
  }
  return blocks;
}

std::vector<Block> RangeAllocator::BlocksApart() const {
  std::vector<Block> blocks;
  for (const auto& [offset, bytes] : live_) {
    const Block block = IsSmall(bytes) ? Block{RoundDown(offset, chunk_bytes_), chunk_bytes_}
                                       : Block{offset, bytes};
    if (blocks.empty() || blocks.back().end() <= block.offset) blocks.push_back(block);
  }
  return blocks;
}

Block RangeAllocator::ChunksOf(Block piece, std::uint32_t users) const {
  Bytes first = piece.offset / chunk_bytes_;
  Bytes end = (piece.offset + piece.bytes - 1) / chunk_bytes_ + 1;
  if (UsersOf(first) > users) ++first;
  if (first < end && UsersOf(end - 1) > users) --end;
  return {first * chunk_bytes_, (end - first) * chunk_bytes_};
}

Block RangeAllocator::EmptiedChunks(Block freed) const { return ChunksOf(freed, 0); }

Block RangeAllocator::OwnChunks(Block piece) const { return ChunksOf(piece, 1); }

std::vector<Block> RangeAllocator::OccupiedBlocks() const {
  std::vector<Block> blocks;
  for (const auto& [first, users] : chunk_users_) {
    for (std::size_t i = 0; i < users.size(); ++i) {
      if (users[i] > 0) Append(blocks, {(first + i) * chunk_bytes_, chunk_bytes_});
    }
  }
  return blocks;
}

}  // namespace torpor::memory
