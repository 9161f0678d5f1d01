#pragma once

#include <cstdint>

#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

// Finds the register with the step of the index in the loop at block `header`, if the loop walks
// through global memory with the warps of a block side by side. The step is the same for all lanes
// and iterations; nvcc makes such loops from `for (i = thread; i < n; i += threads)`. Returns
// kNoIndex for other loops, and if a barrier in the loop keeps the warps together.
std::uint32_t StrideOfLoop(const Function& function, const ControlFlow& flow,
                           const LaneAnalysis& lanes, std::uint32_t header);

}  // namespace torpor::ptx
