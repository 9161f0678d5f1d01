#include "server/executor/image/pool_size.h"

#include <algorithm>

namespace torpor::executor {
namespace {

constexpr Bytes kLeastReserve = 3 * kGiB;
constexpr Bytes kPercent = 3;
constexpr Bytes kReserveShare = 4;  // a reserve is at most one part in so many of the memory

}  // namespace

Bytes ReserveOf(const PoolNeeds& needs) {
  const Bytes automatic = std::max(kLeastReserve, needs.total / 100 * kPercent);
  return std::min(needs.reserve > 0 ? needs.reserve : automatic, needs.total / kReserveShare);
}

Bytes PoolBytes(const PoolNeeds& needs) {
  const Bytes reserve = ReserveOf(needs) + needs.spare;
  const Bytes most = needs.free > reserve ? needs.free - reserve : 0;
  return needs.asked > 0 ? std::min(needs.asked, most) : most;
}

std::size_t ChunksToGiveBack(std::size_t given, Bytes chunk_bytes, Bytes reserve) {
  return std::min<std::size_t>(RoundUp(reserve, chunk_bytes) / chunk_bytes, given / kReserveShare);
}

}  // namespace torpor::executor
