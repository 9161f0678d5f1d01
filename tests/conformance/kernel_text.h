#pragma once

#include <string>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {

constexpr int kBlockThreads = kWarpLanes * kBlockWarps;
constexpr int kScratchBytes = 64;  // of one thread in global memory

// A module of one kernel, `conformance(operands, results, scratch)`: arrays in global memory of,
// for each thread, kOperands words, one word, and kScratchBytes. PTX ISA 8.6.
std::string KernelText(const PtxCase& ptx_case, const std::string& architecture = "sm_90");

}  // namespace torpor::conformance
