#pragma once

#include <cstdint>

#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

// The loop that begins at block `header` walks through global memory, and the warps of a block
// side by side: the register that holds the step of its index, the same for all lanes and
// iterations. nvcc makes such loops of `for (i = thread; i < n; i += threads)`. kNoIndex if the
// loop is none, or if a barrier in it keeps the warps together.
std::uint32_t StrideOfLoop(const Function& function, const ControlFlow& flow,
                           const LaneAnalysis& lanes, std::uint32_t header);

}  // namespace torpor::ptx
