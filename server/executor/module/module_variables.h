#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace torpor::executor {

// Returns the names of a module's variables, for modules without registration: the driver cannot
// list variables. Accepts any bytes; an unreadable image has no variables. The driver may know
// fewer names. Omits variables with an address as first value, because the address would differ on
// another GPU. ResourceExhausted if names or PTX text exceed the limits of VariableNames.
absl::StatusOr<std::set<std::string>> VariablesOf(std::span<const std::uint8_t> image);

}  // namespace torpor::executor
