#include "tests/conformance/machine_code_gaps.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace torpor::conformance {
namespace {

// The cases whose PTX contains `text`. All of them must fail, so that the list only shrinks.
struct Gap {
  std::string_view text;
  std::string_view reason;
};

constexpr std::array<Gap, 0> kGaps = {};

bool IsOf(const Gap& gap, const PtxCase& ptx_case) {
  return ptx_case.text.find(gap.text) != std::string::npos;
}

}  // namespace

std::string MachineCodeGap(const PtxCase& ptx_case) {
  for (const Gap& gap : kGaps)
    if (IsOf(gap, ptx_case)) return std::string(gap.reason);
  return {};
}

std::vector<std::string> UnusedMachineCodeGaps(const std::vector<PtxCase>& cases) {
  std::vector<std::string> unused;
  for (const Gap& gap : kGaps) {
    const auto is_of_it = [&](const PtxCase& ptx_case) { return IsOf(gap, ptx_case); };
    if (std::ranges::none_of(cases, is_of_it)) unused.emplace_back(gap.text);
  }
  return unused;
}

}  // namespace torpor::conformance
