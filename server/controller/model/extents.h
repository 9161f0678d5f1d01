#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/range_allocator.h"
#include "memory/swap_history.h"
#include "proto/torpor/v1/node.pb.h"

namespace torpor::server {

inline void SetExtent(v1::Extent& extent, memory::Block block) {
  extent.set_offset(block.offset);
  extent.set_bytes(block.bytes);
}

// Above this number, the pieces of an image are sent joined, or as whole chunks.
inline constexpr std::size_t kMaxPiecesSent = 4096;

// Returns the parts of `pieces` outside of `hole`.
inline std::vector<memory::Block> Outside(const std::vector<memory::Block>& pieces,
                                          memory::Block hole) {
  std::vector<memory::Block> parts;
  for (const memory::Block piece : pieces) {
    const Bytes before = std::clamp(hole.offset, piece.offset, piece.end());
    const Bytes behind = std::clamp(hole.end(), before, piece.end());
    if (before > piece.offset) parts.push_back({piece.offset, before - piece.offset});
    if (behind < piece.end()) parts.push_back({behind, piece.end() - behind});
  }
  return parts;
}

// Writes the live parts of an image into a message for executors, without `growth`, whole chunks
// that no GPU has room for yet.
inline void SetLive(google::protobuf::RepeatedPtrField<v1::Extent>& live,
                    const memory::RangeAllocator& allocator, memory::Block growth) {
  for (const memory::Block block : Outside(allocator.LiveBlocks(kMaxPiecesSent), growth)) {
    SetExtent(*live.Add(), block);
  }
}

// Whether a swap-in sends pieces joined, so that executors cannot tell allocations apart.
inline bool IsSentJoined(const memory::RangeAllocator& allocator) {
  return allocator.live_count() > kMaxPiecesSent;
}

// As SetLive, in the order of transfer.
inline void SetPlan(google::protobuf::RepeatedPtrField<v1::Allocation>& live,
                    const memory::RangeAllocator& allocator, memory::Block growth,
                    const memory::SwapHistory& history) {
  const std::vector<memory::Block> blocks =
      IsSentJoined(allocator) ? allocator.LiveBlocks(kMaxPiecesSent) : allocator.Blocks();
  std::vector<memory::Extent> pieces;
  for (const memory::Block block : Outside(blocks, growth)) {
    pieces.push_back({block.offset, block.offset + block.bytes});
  }
  for (const memory::SwapAllocation& planned : history.Plan(pieces)) {
    v1::Allocation& allocation = *live.Add();
    allocation.set_offset(planned.extent.begin);
    allocation.set_bytes(planned.extent.bytes());
    allocation.set_holds_addresses(planned.holds_addresses);
  }
}

// Offsets of allocations in a message.
inline std::span<const Bytes> OffsetsOf(
    const google::protobuf::RepeatedField<std::uint64_t>& field) {
  return {field.data(), static_cast<std::size_t>(field.size())};
}

}  // namespace torpor::server
