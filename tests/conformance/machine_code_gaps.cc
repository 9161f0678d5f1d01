#include "tests/conformance/machine_code_gaps.h"

#include <string_view>

namespace torpor::conformance {
namespace {

// The cases whose PTX contains `text`. All of them must fail, so that the list only shrinks.
struct Gap {
  std::string_view text;
  std::string_view reason;
};

constexpr Gap kGaps[] = {
    {"bfe.u64 D, A, B, C;", "ptxas takes more of B and C than their lowest 8 bits"},
    {"bfe.s64 D, A, B, C;", "ptxas takes more of B and C than their lowest 8 bits"},
};

}  // namespace

std::string MachineCodeGap(const PtxCase& ptx_case) {
  for (const Gap& gap : kGaps)
    if (ptx_case.text.find(gap.text) != std::string::npos) return std::string(gap.reason);
  return {};
}

}  // namespace torpor::conformance
