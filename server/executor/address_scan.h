#pragma once

#include <cstdint>
#include <span>

#include "memory/extent_set.h"

namespace torpor::executor {

// Whether an aligned word of `bytes`, which begins as aligned as on the device, is an address of
// `memory`, whose extents are counted from `base`. Reads about as fast as memory is.
bool HoldsAddress(std::span<const std::uint8_t> bytes, std::uint64_t base,
                  const memory::ExtentSet& memory);

}  // namespace torpor::executor
