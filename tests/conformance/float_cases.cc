// Exact arithmetic of f32 and f64: PTX ISA, section "Floating-Point Instructions". The model is the
// host's arithmetic in the same rounding mode.
#include <cfenv>
#include <cmath>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

// The compiler must neither compute these at compile time nor move them out of the rounding mode.
template <typename T>
T Opaque(T value) {
  asm volatile("" : "+x"(value));
  return value;
}

class RoundingMode {
 public:
  explicit RoundingMode(int mode) : before_(std::fegetround()) { std::fesetround(mode); }
  ~RoundingMode() { std::fesetround(before_); }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;

 private:
  int before_;
};

template <int kMode, typename T>
T Add(T a, T b) {
  const RoundingMode mode(kMode);
  return Opaque(Opaque(a) + Opaque(b));
}
template <int kMode, typename T>
T Subtract(T a, T b) {
  const RoundingMode mode(kMode);
  return Opaque(Opaque(a) - Opaque(b));
}
template <int kMode, typename T>
T Multiply(T a, T b) {
  const RoundingMode mode(kMode);
  return Opaque(Opaque(a) * Opaque(b));
}
template <int kMode, typename T>
T Divide(T a, T b) {
  const RoundingMode mode(kMode);
  return Opaque(Opaque(a) / Opaque(b));
}
template <int kMode, typename T>
T MultiplyAdd(T a, T b, T c) {
  const RoundingMode mode(kMode);
  return Opaque(std::fma(Opaque(a), Opaque(b), Opaque(c)));
}
template <int kMode, typename T>
T Root(T a) {
  const RoundingMode mode(kMode);
  return Opaque(std::sqrt(Opaque(a)));
}
template <int kMode, typename T>
T Reciprocal(T a) {
  return Divide<kMode>(T{1}, a);
}

template <int kMode, typename T>
void AddRounded(const std::string& rounding, const std::string& type, std::vector<PtxCase>& cases) {
  const auto two = [&](const char* name, T (*model)(T, T)) {
    cases.push_back(Each(std::string(name) + "." + type,
                         std::string(name) + rounding + "." + type + " D, A, B;", model));
  };
  two("add", Add<kMode, T>);
  two("sub", Subtract<kMode, T>);
  two("mul", Multiply<kMode, T>);
  two("div", Divide<kMode, T>);
  cases.push_back(
      Each("fma." + type, "fma" + rounding + "." + type + " D, A, B, C;", MultiplyAdd<kMode, T>));
  cases.push_back(
      Each("fma." + type, "mad" + rounding + "." + type + " D, A, B, C;", MultiplyAdd<kMode, T>));
  cases.push_back(Each("fpmath(sqrt)", "sqrt" + rounding + "." + type + " D, A;", Root<kMode, T>));
  cases.push_back(
      Each("fpmath(rcp)", "rcp" + rounding + "." + type + " D, A;", Reciprocal<kMode, T>));
}

template <typename T>
void AddAllRoundings(const std::string& type, std::vector<PtxCase>& cases) {
  AddRounded<FE_TONEAREST, T>(".rn", type, cases);
  AddRounded<FE_TOWARDZERO, T>(".rz", type, cases);
  AddRounded<FE_DOWNWARD, T>(".rm", type, cases);
  AddRounded<FE_UPWARD, T>(".rp", type, cases);
}

// One is not a number: the other. Minus zero is less than zero.
template <typename T>
T Least(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T Greatest(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <typename T>
void AddPlain(const std::string& type, std::vector<PtxCase>& cases) {
  const auto two = [&](const char* name, T (*model)(T, T)) {
    cases.push_back(
        Each(std::string(name) + "." + type, std::string(name) + "." + type + " D, A, B;", model));
  };
  two("add", Add<FE_TONEAREST, T>);
  two("sub", Subtract<FE_TONEAREST, T>);
  two("mul", Multiply<FE_TONEAREST, T>);
  two("min", Least<T>);
  two("max", Greatest<T>);
  cases.push_back(Each(
      "abs." + type, "abs." + type + " D, A;", +[](T a) { return std::abs(a); }));
  cases.push_back(Each(
      "neg." + type, "neg." + type + " D, A;", +[](T a) { return -a; }));
  // The sign of the first on the second.
  cases.push_back(Each(
      "fpmath(copysign)", "copysign." + type + " D, A, B;",
      +[](T a, T b) { return std::copysign(b, a); }));
}

template <typename T>
void AddTests(const std::string& type, std::vector<PtxCase>& cases) {
  using U32 = std::uint32_t;
  const auto add = [&](const char* what, U32 (*model)(T)) {
    cases.push_back(Each(
        "testp", std::string("testp.") + what + "." + type + " P, A; selp.u32 D, 1, 0, P;", model));
  };
  add("finite", [](T a) { return U32{std::isfinite(a)}; });
  add("infinite", [](T a) { return U32{std::isinf(a)}; });
  add("number", [](T a) { return U32{!std::isnan(a)}; });
  add("notanumber", [](T a) { return U32{std::isnan(a)}; });
  add("normal", [](T a) { return U32{std::isnormal(a) || a == 0}; });  // zeros count as normal
  add("subnormal", [](T a) { return U32{std::fpclassify(a) == FP_SUBNORMAL}; });
}

float Flushed(float a) { return std::fpclassify(a) == FP_SUBNORMAL ? std::copysign(0.0F, a) : a; }

// What is not a number becomes +0.
float Saturated(float a) {
  if (!(a > 0)) return 0;
  return a > 1 ? 1.0F : a;
}

// The same number in every lane: computed once for the warp.
void AddUniform(std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      "fma.f32", "fma.rm.f32 D, 0f3F99999A, 0f3F99999A, 0f3F8CCCCD;",
      +[] { return MultiplyAdd<FE_DOWNWARD>(1.2F, 1.2F, 1.1F); }));
  cases.push_back(Each(
      "fma.f32", "fma.rp.f32 D, 0f3F99999A, 0f3F99999A, 0f3F8CCCCD;",
      +[] { return MultiplyAdd<FE_UPWARD>(1.2F, 1.2F, 1.1F); }));
  cases.push_back(Each(
      "div.f64", "div.rz.f64 D, 0d3FF0000000000000, 0d4008000000000000;",
      +[] { return Divide<FE_TOWARDZERO>(1.0, 3.0); }));
}

void AddFlushing(std::vector<PtxCase>& cases) {
  const auto two = [&](const char* family, const char* text, float (*model)(float, float)) {
    cases.push_back(Each(family, text, model));
  };
  two("add.f32", "add.ftz.f32 D, A, B;",
      [](float a, float b) { return Flushed(Add<FE_TONEAREST>(Flushed(a), Flushed(b))); });
  two("mul.f32", "mul.ftz.f32 D, A, B;",
      [](float a, float b) { return Flushed(Multiply<FE_TONEAREST>(Flushed(a), Flushed(b))); });
  two("div.f32", "div.rn.ftz.f32 D, A, B;",
      [](float a, float b) { return Flushed(Divide<FE_TONEAREST>(Flushed(a), Flushed(b))); });
  two("min.f32", "min.ftz.f32 D, A, B;",
      [](float a, float b) { return Least(Flushed(a), Flushed(b)); });
  cases.push_back(Each(
      "fma.f32", "fma.rn.ftz.f32 D, A, B, C;", +[](float a, float b, float c) {
        return Flushed(MultiplyAdd<FE_TONEAREST>(Flushed(a), Flushed(b), Flushed(c)));
      }));
  cases.push_back(Each(
      "abs.f32", "abs.ftz.f32 D, A;", +[](float a) { return Flushed(std::abs(a)); }));
  two("add.f32", "add.sat.f32 D, A, B;",
      [](float a, float b) { return Saturated(Add<FE_TONEAREST>(a, b)); });
  two("mul.f32", "mul.rz.sat.f32 D, A, B;",
      [](float a, float b) { return Saturated(Multiply<FE_TOWARDZERO>(a, b)); });
  cases.push_back(Each(
      "fma.f32", "fma.rn.sat.f32 D, A, B, C;",
      +[](float a, float b, float c) { return Saturated(MultiplyAdd<FE_TONEAREST>(a, b, c)); }));
  // With .NaN, what is not a number goes through.
  two("min.f32", "min.NaN.f32 D, A, B;",
      [](float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : Least(a, b); });
  two("max.f32", "max.NaN.f32 D, A, B;",
      [](float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : Greatest(a, b); });
}

}  // namespace

std::vector<PtxCase> FloatCases() {
  std::vector<PtxCase> cases;
  AddAllRoundings<float>("f32", cases);
  AddAllRoundings<double>("f64", cases);
  AddPlain<float>("f32", cases);
  AddPlain<double>("f64", cases);
  AddTests<float>("f32", cases);
  AddTests<double>("f64", cases);
  AddUniform(cases);
  AddFlushing(cases);
  return cases;
}

}  // namespace torpor::conformance
