#pragma once

#include <string>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {

// The distance of a result from the model's, as a part of what the tolerance allows: at most 1 is
// right, and what ought to have the same bits is either 0 or infinitely far.
double Distance(const PtxCase& ptx_case, Word got, Word wanted);

// A word as people read it: its bits and, of floating-point types, the value.
std::string Describe(const PtxCase& ptx_case, Word word);

}  // namespace torpor::conformance
