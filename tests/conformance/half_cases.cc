// f16 and bf16, one or two at a time: PTX ISA, sections "Half Precision Floating-Point
// Instructions" and "Half Precision Comparison Instructions". The model computes exactly and rounds
// once.
#include <cmath>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

template <typename T>
T Rounded(Wide value);
template <>
Half Rounded(Wide value) {
  return ToHalf(value);
}
template <>
Bfloat Rounded(Wide value) {
  return ToBfloat(value);
}

template <typename T>
Wide Exact(T value) {
  return Wide{ToDouble(value)};
}

// A zero out of two exact terms that cancel is positive; the sum of two minus zeros is not.
template <typename T>
T Sum(T a, T b) {
  return Rounded<T>(Exact(a) + Exact(b));
}
template <typename T>
T Difference(T a, T b) {
  return Rounded<T>(Exact(a) - Exact(b));
}
template <typename T>
T Product(T a, T b) {
  return Rounded<T>(Exact(a) * Exact(b));
}
// Bfloat products of extreme exponents plus a third exceed even 113 bits; the host's f64 fma would
// round twice. Numbers of extreme exponents are not drawn for bf16.
template <typename T>
T ProductSum(T a, T b, T c) {
  return Rounded<T>(Exact(a) * Exact(b) + Exact(c));
}

template <typename T>
T Least(T a, T b) {
  if (std::isnan(ToDouble(a))) return b;
  if (std::isnan(ToDouble(b))) return a;
  if (ToDouble(a) == ToDouble(b)) return (a.bits & 0x8000) != 0 ? a : b;
  return ToDouble(a) < ToDouble(b) ? a : b;
}
template <typename T>
T Greatest(T a, T b) {
  if (std::isnan(ToDouble(a))) return b;
  if (std::isnan(ToDouble(b))) return a;
  if (ToDouble(a) == ToDouble(b)) return (a.bits & 0x8000) != 0 ? b : a;
  return ToDouble(a) > ToDouble(b) ? a : b;
}
template <typename T>
T Negated(T a) {
  return {static_cast<std::uint16_t>(a.bits ^ 0x8000)};
}
template <typename T>
T Absolute(T a) {
  return {static_cast<std::uint16_t>(a.bits & 0x7fff)};
}

template <typename Pair, auto kModel>
Pair Both(Pair a, Pair b) {
  return {kModel(a.low, b.low), kModel(a.high, b.high)};
}
template <typename Pair, auto kModel>
Pair BothOfOne(Pair a) {
  return {kModel(a.low), kModel(a.high)};
}
template <typename Pair, auto kModel>
Pair BothOfThree(Pair a, Pair b, Pair c) {
  return {kModel(a.low, b.low, c.low), kModel(a.high, b.high, c.high)};
}

// Near one, so that every sum of products is exact in the model.
template <typename T>
T Moderate(std::mt19937_64& random) {
  return Rounded<T>(Wide{std::uniform_real_distribution<double>(-8, 8)(random)});
}

template <typename T, typename Pair>
void AddModerate(PtxCase& made) {
  const bool is_pair = made.result_bits == 32;
  made.draw = [is_pair](std::mt19937_64& random, Operands& operands) {
    for (Word& operand : operands)
      operand = is_pair ? ToWord(Pair{Moderate<T>(random), Moderate<T>(random)})
                        : ToWord(Moderate<T>(random));
  };
}

template <typename T, typename Pair, T (*kModel)(T, T)>
void AddTwo(const char* family, const std::string& name, const std::string& type,
            std::vector<PtxCase>& cases) {
  cases.push_back(Each(family, name + "." + type + " D, A, B;", kModel));
  cases.push_back(Each(family, name + "." + type + "x2 D, A, B;", Both<Pair, kModel>));
}

template <typename T, typename Pair, T (*kModel)(T)>
void AddOne(const char* family, const std::string& name, const std::string& type,
            std::vector<PtxCase>& cases) {
  cases.push_back(Each(family, name + "." + type + " D, A;", kModel));
  cases.push_back(Each(family, name + "." + type + "x2 D, A;", BothOfOne<Pair, kModel>));
}

template <typename T, typename Pair>
void AddArithmetic(const std::string& type, std::vector<PtxCase>& cases) {
  AddTwo<T, Pair, Sum<T>>("add.f16/bf16", "add.rn", type, cases);
  AddTwo<T, Pair, Difference<T>>("sub.f16/bf16", "sub.rn", type, cases);
  AddTwo<T, Pair, Product<T>>("mul.f16/bf16", "mul.rn", type, cases);
  AddTwo<T, Pair, Least<T>>("min.f16/bf16", "min", type, cases);
  AddTwo<T, Pair, Greatest<T>>("max.f16/bf16", "max", type, cases);
  AddOne<T, Pair, Negated<T>>("neg.f16/bf16", "neg", type, cases);
  AddOne<T, Pair, Absolute<T>>("abs.f16/bf16", "abs", type, cases);
  cases.push_back(Each("fma.f16/bf16", "fma.rn." + type + " D, A, B, C;", ProductSum<T>));
  AddModerate<T, Pair>(cases.back());
  cases.push_back(
      Each("fma.f16/bf16", "fma.rn." + type + "x2 D, A, B, C;", BothOfThree<Pair, ProductSum<T>>));
  AddModerate<T, Pair>(cases.back());
}

template <typename T>
void AddComparisons(const std::string& type, std::vector<PtxCase>& cases) {
  using U32 = std::uint32_t;
  const auto add = [&](const char* comparison, U32 (*model)(T, T)) {
    cases.push_back(Each(
        "setp.f16/bf16",
        std::string("setp.") + comparison + "." + type + " P, A, B; selp.u32 D, 1, 0, P;", model));
  };
  add("eq", [](T a, T b) { return U32{ToDouble(a) == ToDouble(b)}; });
  add("lt", [](T a, T b) { return U32{ToDouble(a) < ToDouble(b)}; });
  add("ge", [](T a, T b) { return U32{ToDouble(a) >= ToDouble(b)}; });
  add("neu", [](T a, T b) { return U32{ToDouble(a) != ToDouble(b)}; });
  add("gtu", [](T a, T b) { return U32{!(ToDouble(a) <= ToDouble(b))}; });
}

void AddFunctions(std::vector<PtxCase>& cases) {
  const auto moderate = [](std::mt19937_64& random, Operands& operands) {
    operands[0] = ToWord(Moderate<Half>(random));
  };
  cases.push_back(Within({.relative = std::exp2(-9.5)},
                         Drawn(moderate, Each(
                                             "fpmath(ex2)", "ex2.approx.f16 D, A;", +[](Half a) {
                                               return ToHalf(Wide{std::exp2(ToDouble(a))});
                                             }))));
  cases.push_back(Within({.relative = std::exp2(-9.5), .absolute = std::exp2(-10.5)},
                         Drawn(moderate, Each(
                                             "fpmath(tanh)", "tanh.approx.f16 D, A;", +[](Half a) {
                                               return ToHalf(Wide{std::tanh(ToDouble(a))});
                                             }))));
}

}  // namespace

std::vector<PtxCase> HalfCases() {
  std::vector<PtxCase> cases;
  AddArithmetic<Half, Half2>("f16", cases);
  AddArithmetic<Bfloat, Bfloat2>("bf16", cases);
  AddComparisons<Half>("f16", cases);
  AddComparisons<Bfloat>("bf16", cases);
  AddFunctions(cases);
  return cases;
}

}  // namespace torpor::conformance
