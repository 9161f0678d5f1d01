#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// Loads a module from untrusted bytes of a client: code that passes CheckModule, or a
// wire::RelocatableModule. Of a RelocatableModule, uses the linked machine code if present for the
// device, and links the parts otherwise. Blocks. The caller unloads the module.
absl::StatusOr<CUmodule> LoadModuleCode(const Device& device, std::span<const std::uint8_t> code);

}  // namespace torpor::executor
