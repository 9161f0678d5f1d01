#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace torpor::executor {

// The names of a module's variables, where nothing registers them: the driver cannot list them.
// `image` may hold anything; what cannot be read has none. The driver may know fewer. Left out are
// variables whose first value is an address: on another GPU it would be another.
// ResourceExhausted: more names, or more PTX to look for them in, than any module has.
absl::StatusOr<std::set<std::string>> VariablesOf(std::span<const std::uint8_t> image);

}  // namespace torpor::executor
