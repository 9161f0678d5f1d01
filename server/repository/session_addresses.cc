#include "server/repository/session_addresses.h"

namespace torpor::server {

SessionAddresses::SessionAddresses(Bytes bytes, Bytes segment_bytes)
    : segment_bytes_(segment_bytes),
      total_bytes_(RoundDown(bytes, segment_bytes)),
      free_bytes_(total_bytes_),
      free_(0) {
  if (total_bytes_ > 0) free_.Add({0, total_bytes_});
}

std::optional<memory::Block> SessionAddresses::Take(Bytes bytes) {
  if (bytes > free_bytes_) return std::nullopt;
  const std::optional<memory::Block> block =
      free_.Take(RoundUp(bytes, segment_bytes_), segment_bytes_);
  if (block) free_bytes_ -= block->bytes;
  return block;
}

std::optional<memory::Block> SessionAddresses::TakeBehind(Bytes end, Bytes bytes) {
  if (bytes > free_bytes_) return std::nullopt;
  const memory::Block block = {end, RoundUp(bytes, segment_bytes_)};
  if (!TakeAt(block)) return std::nullopt;
  return block;
}

bool SessionAddresses::TakeAt(memory::Block block) {
  const bool is_whole = block.bytes > 0 && block.offset % segment_bytes_ == 0 &&
                        block.bytes % segment_bytes_ == 0 && block.bytes <= free_bytes_;
  if (!is_whole || !free_.TakeAt(block)) return false;
  free_bytes_ -= block.bytes;
  return true;
}

void SessionAddresses::Release(memory::Block block) {
  free_bytes_ += block.bytes;
  free_.Add(block);
}

}  // namespace torpor::server
