#pragma once

#include "memory/range_allocator.h"
#include "proto/torpor/v1/node.pb.h"

namespace torpor::server {

inline void SetExtent(v1::Extent& extent, memory::Block block) {
  extent.set_offset(block.offset);
  extent.set_bytes(block.bytes);
}

// What of an image is live, as executors are told of it.
inline void SetLive(google::protobuf::RepeatedPtrField<v1::Extent>& live,
                    const memory::RangeAllocator& allocator) {
  constexpr std::size_t kMostSent = 4096;  // more pieces than this travel as whole chunks
  for (const memory::Block block : allocator.LiveBlocks(kMostSent)) SetExtent(*live.Add(), block);
}

}  // namespace torpor::server
