#pragma once

#include <cstdint>
#include <span>

#include "base/units.h"

namespace torpor::executor {

// Whether an aligned word of `bytes`, which lie at `address` on the device, is in
// [base, base + range). Reads about as fast as memory is.
bool HoldsAddress(std::span<const std::uint8_t> bytes, std::uint64_t address, std::uint64_t base,
                  Bytes range);

}  // namespace torpor::executor
