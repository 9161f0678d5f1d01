#pragma once

#include <string>
#include <vector>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {

// Why the emulator is not yet right about the machine code of that case; empty if it must be.
std::string MachineCodeGap(const PtxCase& ptx_case);

// The gaps that are none of these cases': they are to be struck off the list.
std::vector<std::string> UnusedMachineCodeGaps(const std::vector<PtxCase>& cases);

}  // namespace torpor::conformance
