#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "server/executor/gpu/device.h"

namespace torpor::executor {

// A module from what a client sent, which may be anything: what CheckModule allows, or a
// wire::RelocatableModule, whose machine code is taken where there is some for the device and whose
// parts are linked elsewhere.
absl::StatusOr<CUmodule> LoadModuleCode(const Device& device, std::span<const std::uint8_t> image);

}  // namespace torpor::executor
