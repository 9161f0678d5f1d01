#pragma once

#include <cstdint>
#include <span>

#include "server/executor/gpu/address_range.h"

namespace torpor::executor {

// Returns whether an aligned word of `bytes`, located at device address `address`, lies in
// `range`. Runs at about memory speed.
bool HoldsAddress(std::span<const std::uint8_t> bytes, std::uint64_t address, AddressRange range);

}  // namespace torpor::executor
