#include "memory/handle_balance.h"

namespace torpor::memory {

HandleCounts StartCounts(Bytes pool_bytes, const HandleSizes& sizes, const HandleBalance& balance) {
  const double large_bytes = static_cast<double>(pool_bytes) * (1 - balance.start_share);
  HandleCounts counts;
  counts.large = static_cast<std::size_t>(large_bytes / static_cast<double>(sizes.large_bytes));
  counts.small = (pool_bytes - counts.large * sizes.large_bytes) / sizes.small_bytes;
  return counts;
}

std::optional<HandleExchange> NextExchange(HandleCounts free, const HandleSizes& sizes,
                                           const HandleBalance& balance) {
  const std::size_t ratio = sizes.small_per_large();
  const std::size_t in_small = free.small + free.large * ratio;
  const double low = static_cast<double>(in_small) * balance.low_share;
  const double high = static_cast<double>(in_small) * balance.high_share;
  if (static_cast<double>(free.small) < low && free.large > 0) {
    return HandleExchange{{0, 1}, {ratio, 0}};
  }
  // Not if there would be too few at once.
  if (static_cast<double>(free.small) > high && free.small >= ratio &&
      static_cast<double>(free.small - ratio) >= low) {
    return HandleExchange{{ratio, 0}, {0, 1}};
  }
  return std::nullopt;
}

}  // namespace torpor::memory
