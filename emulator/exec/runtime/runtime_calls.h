#pragma once

#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// The functions behind WarpContext::calls.
const RuntimeCalls& Runtime();

}  // namespace torpor::emulator
