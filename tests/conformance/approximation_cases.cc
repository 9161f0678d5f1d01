// Approximate functions, within the largest errors that PTX ISA states for them, section
// "Floating-Point Instructions". The model is the host's function in f64.
#include <cmath>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

double TwoTo(double exponent) { return std::exp2(exponent); }

auto Uniform(double from, double to) {
  return [=](std::mt19937_64& random, Operands& operands) {
    std::uniform_real_distribution<double> distribution(from, to);
    for (Word& operand : operands) operand = ToWord(static_cast<float>(distribution(random)));
  };
}

// Of any size, as numbers' exponents are spread, but away from what overflows or is subnormal.
void Spread(std::mt19937_64& random, Operands& operands) {
  for (Word& operand : operands) {
    const double exponent = std::uniform_real_distribution<double>(-60, 60)(random);
    operand = ToWord(static_cast<float>(std::exp2(exponent)));
  }
}

void SpreadDoubles(std::mt19937_64& random, Operands& operands) {
  for (Word& operand : operands) {
    const double exponent = std::uniform_real_distribution<double>(-900, 900)(random);
    operand = ToWord(std::exp2(exponent));
  }
}

template <typename Draw>
PtxCase Near(Tolerance tolerance, Draw draw, PtxCase made) {
  return Within(tolerance, Drawn(draw, std::move(made)));
}

float ToFloat(double value) { return static_cast<float>(value); }

void AddOfOne(std::vector<PtxCase>& cases) {
  const auto one = [](const char* family, const char* text, float (*model)(float)) {
    return Each(family, text, model);
  };
  // One unit in the last place, and the rounding of the model itself.
  const Tolerance ulp = {.relative = TwoTo(-22.4)};
  cases.push_back(Near(ulp, Spread, one("fpmath(rcp)", "rcp.approx.f32 D, A;", [](float a) {
                         return ToFloat(1.0 / a);
                       })));
  cases.push_back(Near(ulp, Spread, one("fpmath(rcp)", "rcp.approx.ftz.f32 D, A;", [](float a) {
                         return ToFloat(1.0 / a);
                       })));
  cases.push_back(Near({.relative = TwoTo(-22.4)}, Spread,
                       one("fpmath(sqrt)", "sqrt.approx.f32 D, A;",
                           [](float a) { return ToFloat(std::sqrt(double{a})); })));
  cases.push_back(Near({.relative = TwoTo(-22.4)}, Spread,
                       one("fpmath(rsqrt)", "rsqrt.approx.f32 D, A;",
                           [](float a) { return ToFloat(1 / std::sqrt(double{a})); })));
  cases.push_back(Near({.absolute = TwoTo(-20.5)}, Uniform(-3.14159, 3.14159),
                       one("fpmath(sin)", "sin.approx.f32 D, A;",
                           [](float a) { return ToFloat(std::sin(double{a})); })));
  cases.push_back(Near({.absolute = TwoTo(-20.5)}, Uniform(-3.14159, 3.14159),
                       one("fpmath(cos)", "cos.approx.f32 D, A;",
                           [](float a) { return ToFloat(std::cos(double{a})); })));
  cases.push_back(Near({.relative = TwoTo(-22), .absolute = TwoTo(-22)}, Spread,
                       one("fpmath(lg2)", "lg2.approx.f32 D, A;",
                           [](float a) { return ToFloat(std::log2(double{a})); })));
  cases.push_back(Near({.relative = TwoTo(-22)}, Uniform(-125, 127),
                       one("fpmath(ex2)", "ex2.approx.f32 D, A;",
                           [](float a) { return ToFloat(std::exp2(double{a})); })));
  cases.push_back(Near({.relative = TwoTo(-22)}, Uniform(-125, 127),
                       one("fpmath(ex2)", "ex2.approx.ftz.f32 D, A;",
                           [](float a) { return ToFloat(std::exp2(double{a})); })));
  cases.push_back(Near({.relative = TwoTo(-10.9)}, Uniform(-6, 6),
                       one("fpmath(tanh)", "tanh.approx.f32 D, A;",
                           [](float a) { return ToFloat(std::tanh(double{a})); })));
}

void AddQuotients(std::vector<PtxCase>& cases) {
  const auto quotient = +[](float a, float b) { return ToFloat(double{a} / b); };
  cases.push_back(Near({.relative = TwoTo(-21.9)}, Spread,
                       Each("div.f32", "div.approx.f32 D, A, B;", quotient)));
  cases.push_back(
      Near({.relative = TwoTo(-21.9)}, Spread, Each("div.f32", "div.full.f32 D, A, B;", quotient)));
}

void AddDoubles(std::vector<PtxCase>& cases) {
  // The upper 32 bits of the result count, the lower are zero.
  cases.push_back(
      Near({.relative = TwoTo(-19.9)}, SpreadDoubles,
           Each(
               "fpmath(rcp)", "rcp.approx.ftz.f64 D, A;", +[](double a) { return 1 / a; })));
  cases.push_back(Near(
      {.relative = TwoTo(-19.9)}, SpreadDoubles,
      Each(
          "fpmath(rsqrt)", "rsqrt.approx.f64 D, A;", +[](double a) { return 1 / std::sqrt(a); })));
}

// What the tables of PTX ISA say of zeros, infinities and what is out of range.
void AddSpecialValues(std::vector<PtxCase>& cases) {
  static constexpr float kSpecial[] = {0.0F, -0.0F, INFINITY, -INFINITY, NAN, -1.0F};
  const auto special = [](std::mt19937_64& random, Operands& operands) {
    operands[0] = ToWord(kSpecial[random() % std::size(kSpecial)]);
  };
  const auto add = [&](const char* family, const char* name, float (*model)(float)) {
    cases.push_back(Drawn(special, Each(family, std::string(name) + ".approx.f32 D, A;", model)));
  };
  add("fpmath(rcp)", "rcp", [](float a) { return 1.0F / a; });
  add("fpmath(sqrt)", "sqrt", [](float a) { return std::sqrt(a); });
  add("fpmath(rsqrt)", "rsqrt", [](float a) { return 1.0F / std::sqrt(a); });
  add("fpmath(lg2)", "lg2", [](float a) { return std::log2(a); });
  add("fpmath(ex2)", "ex2", [](float a) { return std::exp2(a); });
  const auto endless = [](std::mt19937_64& random, Operands& operands) {
    operands[0] = ToWord(kSpecial[2 + random() % 3]);
  };
  const auto nothing = +[](float) { return static_cast<float>(NAN); };
  cases.push_back(Drawn(endless, Each("fpmath(sin)", "sin.approx.f32 D, A;", nothing)));
  cases.push_back(Drawn(endless, Each("fpmath(cos)", "cos.approx.f32 D, A;", nothing)));
}

}  // namespace

std::vector<PtxCase> ApproximationCases() {
  std::vector<PtxCase> cases;
  AddOfOne(cases);
  AddQuotients(cases);
  AddDoubles(cases);
  AddSpecialValues(cases);
  return cases;
}

}  // namespace torpor::conformance
