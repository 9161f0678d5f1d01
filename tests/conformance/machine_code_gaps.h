#pragma once

#include <string>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {

// Why the emulator is not yet right about the machine code of that case; empty if it must be.
std::string MachineCodeGap(const PtxCase& ptx_case);

}  // namespace torpor::conformance
