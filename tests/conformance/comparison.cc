#include "tests/conformance/comparison.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

namespace torpor::conformance {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

// The numbers in a word.
std::vector<double> Values(Compare compare, Word word) {
  const auto half = [word](int i) {
    return ToDouble(Half{static_cast<std::uint16_t>(word >> (16 * i))});
  };
  const auto bfloat = [word](int i) {
    return ToDouble(Bfloat{static_cast<std::uint16_t>(word >> (16 * i))});
  };
  switch (compare) {
    case Compare::kBits:
      return {};
    case Compare::kFloat:
      return {FromWord<float>(word)};
    case Compare::kDouble:
      return {FromWord<double>(word)};
    case Compare::kHalf:
      return {half(0)};
    case Compare::kHalf2:
      return {half(0), half(1)};
    case Compare::kHalf4:
      return {half(0), half(1), half(2), half(3)};
    case Compare::kBfloat:
      return {bfloat(0)};
    case Compare::kBfloat2:
      return {bfloat(0), bfloat(1)};
  }
  return {};
}

double Distance(const Tolerance& tolerance, double got, double wanted) {
  if (std::isnan(got) && std::isnan(wanted)) return 0;
  if (got == wanted)
    return std::signbit(got) == std::signbit(wanted) || tolerance.relative > 0 ||
                   tolerance.absolute > 0
               ? 0
               : kFar;
  if (!std::isfinite(got) || !std::isfinite(wanted)) return kFar;
  const double error = std::abs(got - wanted);
  const double allowed = std::max(tolerance.relative * std::abs(wanted), tolerance.absolute);
  return allowed > 0 ? error / allowed : kFar;
}

}  // namespace

double Distance(const PtxCase& ptx_case, Word got, Word wanted) {
  if (got == wanted) return 0;
  const std::vector<double> got_values = Values(ptx_case.compare, got);
  if (got_values.empty()) return kFar;
  const std::vector<double> wanted_values = Values(ptx_case.compare, wanted);
  double most = 0;
  for (std::size_t i = 0; i < got_values.size(); ++i)
    most = std::max(most, Distance(ptx_case.tolerance, got_values[i], wanted_values[i]));
  return most;
}

std::string Describe(const PtxCase& ptx_case, Word word) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(word));
  std::string described = text.data();
  for (const double value : Values(ptx_case.compare, word)) {
    std::snprintf(text.data(), text.size(), " (%.9g)", value);
    described += text.data();
  }
  return described;
}

}  // namespace torpor::conformance
