#pragma once

#include <vector>

#include "memory/swap_history.h"

namespace torpor::executor {

// What a swap-in brings, in this order; none of it holds addresses.
inline std::vector<memory::SwapAllocation> InOrder(const std::vector<memory::Extent>& extents) {
  std::vector<memory::SwapAllocation> allocations;
  allocations.reserve(extents.size());
  for (const memory::Extent& extent : extents) allocations.push_back({extent});
  return allocations;
}

}  // namespace torpor::executor
