// Built with -frounding-math: the compiler must neither fold nor move what depends on the mode.
#include "emulator/exec/runtime/rounded_math.h"

#include <bit>
#include <cfenv>
#include <cmath>

#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {
namespace {

// The rounding mode of <cfenv>.
int ModeOf(std::uint32_t rounding) {
  switch (static_cast<Rounding>(rounding)) {
    case Rounding::kZero:
      return FE_TOWARDZERO;
    case Rounding::kDown:
      return FE_DOWNWARD;
    case Rounding::kUp:
      return FE_UPWARD;
    case Rounding::kNearest:
      break;
  }
  return FE_TONEAREST;
}

template <typename Real, typename Bits>
Real Compute(RoundedOperation operation, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const auto x = std::bit_cast<Real>(static_cast<Bits>(a));
  const auto y = std::bit_cast<Real>(static_cast<Bits>(b));
  switch (operation) {
    case RoundedOperation::kAdd:
      return x + y;
    case RoundedOperation::kSub:
      return x - y;
    case RoundedOperation::kMul:
      return x * y;
    case RoundedOperation::kDiv:
      return x / y;
    case RoundedOperation::kFma:
      return std::fma(x, y, std::bit_cast<Real>(static_cast<Bits>(c)));
    case RoundedOperation::kSqrt:
      return std::sqrt(x);
    case RoundedOperation::kFromSigned:
      return static_cast<Real>(static_cast<std::int64_t>(a));
    case RoundedOperation::kFromUnsigned:
      return static_cast<Real>(a);
    case RoundedOperation::kNarrow:
      return static_cast<Real>(std::bit_cast<double>(a));
  }
  return x;
}

}  // namespace

void RoundedMath(std::uint64_t* out, const std::uint64_t* a, const std::uint64_t* b,
                 const std::uint64_t* c, std::uint32_t operation, std::uint32_t rounding,
                 std::uint32_t bits) {
  std::fesetround(ModeOf(rounding));
  const auto kind = static_cast<RoundedOperation>(operation);
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (bits == 32) {
      const auto value = Compute<float, std::uint32_t>(kind, a[lane], b[lane], c[lane]);
      out[lane] = std::bit_cast<std::uint32_t>(value);
    } else {
      const auto value = Compute<double, std::uint64_t>(kind, a[lane], b[lane], c[lane]);
      out[lane] = std::bit_cast<std::uint64_t>(value);
    }
  }
  std::fesetround(FE_TONEAREST);
}

}  // namespace torpor::emulator
