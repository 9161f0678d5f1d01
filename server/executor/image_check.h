#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"

namespace torpor::executor {

// Whether `image` is what cuModuleLoadData takes (a fatbin, a cubin, or PTX text that ends with
// NUL) and the lengths in it stay inside its bytes: the driver trusts them.
absl::Status CheckImage(std::span<const std::uint8_t> image);

// The same of a fatbin only.
absl::Status CheckFatbin(std::span<const std::uint8_t> image);

}  // namespace torpor::executor
