#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"

namespace torpor::executor {

// Whether `image` is a fatbin, a cubin, or PTX text with a NUL behind it, and the lengths in it, in
// a fatbin's entries and their cubins too, stay inside its bytes: the driver, who is told no size,
// trusts them. What else cuModuleLoadData takes (a wrapper of a fatbin) holds pointers.
absl::Status CheckModule(std::span<const std::uint8_t> image);

// The same of a fatbin only.
absl::Status CheckFatbin(std::span<const std::uint8_t> image);

}  // namespace torpor::executor
