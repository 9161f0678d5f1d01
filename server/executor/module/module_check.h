#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"

namespace torpor::executor {

// Checks that `code` is a fatbin, a cubin, or NUL-terminated PTX text, and that all lengths,
// including those in a fatbin's entries and their cubins, stay inside the code: the driver gets no
// size and trusts the lengths. Rejects the fatbin wrapper, which cuModuleLoadData also accepts,
// because a wrapper holds pointers. Accepts any bytes.
absl::Status CheckModule(std::span<const std::uint8_t> code);

// Like CheckModule, for fatbins only.
absl::Status CheckFatbin(std::span<const std::uint8_t> code);

}  // namespace torpor::executor
