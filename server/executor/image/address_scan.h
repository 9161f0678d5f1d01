#pragma once

#include <cstdint>
#include <span>

#include "base/units.h"

namespace torpor::executor {

// Returns whether an aligned word of `bytes`, located at device address `address`, lies in [base,
// base + range). Runs at about memory speed.
bool HoldsAddress(std::span<const std::uint8_t> bytes, std::uint64_t address, std::uint64_t base,
                  Bytes range);

}  // namespace torpor::executor
