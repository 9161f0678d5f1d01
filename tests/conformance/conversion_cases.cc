// Conversions: PTX ISA, section "Data Movement and Conversion Instructions: cvt".
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

// A width of 8 bits has no registers: the operand is the low byte of a 16-bit register, the result
// is extended to 32 bits.
template <typename T>
using Register = std::conditional_t<sizeof(T) == 1, std::uint16_t, T>;
template <typename T>
using ResultRegister =
    std::conditional_t<sizeof(T) == 1,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>, T>;

template <typename T>
struct NamedType {
  using Type = T;
  const char* name;
};

template <typename Add>
void ForEachInteger(const Add& add) {
  add(NamedType<std::int8_t>{"s8"});
  add(NamedType<std::uint8_t>{"u8"});
  add(NamedType<std::int16_t>{"s16"});
  add(NamedType<std::uint16_t>{"u16"});
  add(NamedType<std::int32_t>{"s32"});
  add(NamedType<std::uint32_t>{"u32"});
  add(NamedType<std::int64_t>{"s64"});
  add(NamedType<std::uint64_t>{"u64"});
}

template <typename To, typename From>
ResultRegister<To> Truncated(Register<From> a) {
  return static_cast<To>(static_cast<From>(a));
}

template <typename To, typename From>
ResultRegister<To> Clamped(Register<From> a) {
  using Limits = std::numeric_limits<To>;
  const auto exact = __int128{static_cast<From>(a)};
  if (exact < Limits::min()) return Limits::min();
  if (exact > Limits::max()) return Limits::max();
  return static_cast<To>(exact);
}

// Saturation is no modifier where nothing can saturate.
template <typename To, typename From>
constexpr bool CanExceed() {
  using ToLimits = std::numeric_limits<To>;
  using FromLimits = std::numeric_limits<From>;
  return __int128{FromLimits::min()} < __int128{ToLimits::min()} ||
         __int128{FromLimits::max()} > __int128{ToLimits::max()};
}

void AddBetweenIntegers(std::vector<PtxCase>& cases) {
  ForEachInteger([&](auto to) {
    ForEachInteger([&](auto from) {
      using To = typename decltype(to)::Type;
      using From = typename decltype(from)::Type;
      const std::string types = std::string(to.name) + "." + from.name + " D, A;";
      cases.push_back(Each("cvt.int", "cvt." + types, Truncated<To, From>));
      if (CanExceed<To, From>())
        cases.push_back(Each("cvt.int", "cvt.sat." + types, Clamped<To, From>));
    });
  });
}

// What is not a number becomes zero, or for 64 bits the lowest bit pattern of the sign; PTX leaves
// that open, so it is not drawn.
template <typename To, typename From, int kMode>
To ToInteger(From a) {
  using Limits = std::numeric_limits<To>;
  const int before = std::fegetround();
  std::fesetround(kMode);
  From opaque = a;
  asm volatile("" : "+x"(opaque));
  const From rounded = std::nearbyint(opaque);
  std::fesetround(before);
  if (rounded >= std::ldexp(From{1}, Limits::digits)) return Limits::max();
  if (rounded <= static_cast<From>(Limits::min())) return Limits::min();
  return static_cast<To>(rounded);
}

template <typename From>
void DrawNumber(std::mt19937_64& random, Operands& operands) {
  From a = Draw<From>(random);
  while (std::isnan(a)) a = Draw<From>(random);
  if (random() % 2 == 0) {
    // Of a size that integers have.
    a = static_cast<From>(std::ldexp(std::uniform_real_distribution<double>(-1, 1)(random),
                                     static_cast<int>(random() % 70)));
  }
  operands[0] = ToWord(a);
}

template <typename To, typename From>
void AddToInteger(const std::string& to, const std::string& from, std::vector<PtxCase>& cases) {
  const auto add = [&](const char* rounding, To (*model)(From)) {
    cases.push_back(Drawn(
        DrawNumber<From>,
        Each("cvt.f", std::string("cvt.") + rounding + "." + to + "." + from + " D, A;", model)));
  };
  add("rni", ToInteger<To, From, FE_TONEAREST>);
  add("rzi", ToInteger<To, From, FE_TOWARDZERO>);
  add("rmi", ToInteger<To, From, FE_DOWNWARD>);
  add("rpi", ToInteger<To, From, FE_UPWARD>);
}

template <typename From>
void AddToIntegers(const std::string& from, std::vector<PtxCase>& cases) {
  AddToInteger<std::int32_t, From>("s32", from, cases);
  AddToInteger<std::uint32_t, From>("u32", from, cases);
  AddToInteger<std::int64_t, From>("s64", from, cases);
  AddToInteger<std::uint64_t, From>("u64", from, cases);
  AddToInteger<std::int16_t, From>("s16", from, cases);
  AddToInteger<std::uint16_t, From>("u16", from, cases);
}

// By the host, whose conversions heed the rounding mode; what they have too few bits for goes
// through x87's 64 bits of fraction, which hold every integer.
template <typename To, typename From, int kMode>
To Converted(From a) {
  const int before = std::fegetround();
  std::fesetround(kMode);
  volatile long double exact = static_cast<long double>(a);
  volatile To result = static_cast<To>(exact);
  std::fesetround(before);
  return result;
}

template <typename To, typename From>
void AddRounded(const std::string& to, const std::string& from, std::vector<PtxCase>& cases) {
  const auto add = [&](const char* rounding, To (*model)(From)) {
    cases.push_back(
        Each("cvt.f", std::string("cvt.") + rounding + "." + to + "." + from + " D, A;", model));
  };
  add("rn", Converted<To, From, FE_TONEAREST>);
  add("rz", Converted<To, From, FE_TOWARDZERO>);
  add("rm", Converted<To, From, FE_DOWNWARD>);
  add("rp", Converted<To, From, FE_UPWARD>);
}

template <typename To>
void AddFromIntegers(const std::string& to, std::vector<PtxCase>& cases) {
  AddRounded<To, std::int16_t>(to, "s16", cases);
  AddRounded<To, std::uint16_t>(to, "u16", cases);
  AddRounded<To, std::int32_t>(to, "s32", cases);
  AddRounded<To, std::uint32_t>(to, "u32", cases);
  AddRounded<To, std::int64_t>(to, "s64", cases);
  AddRounded<To, std::uint64_t>(to, "u64", cases);
}

template <typename T, int kMode>
T Integral(T a) {
  const int before = std::fegetround();
  std::fesetround(kMode);
  T opaque = a;
  asm volatile("" : "+x"(opaque));
  T rounded = std::nearbyint(opaque);
  asm volatile("" : "+x"(rounded));
  std::fesetround(before);
  return rounded;
}

template <typename T>
void AddToIntegral(const std::string& type, std::vector<PtxCase>& cases) {
  const auto add = [&](const char* rounding, T (*model)(T)) {
    cases.push_back(
        Each("cvt.f", std::string("cvt.") + rounding + "." + type + "." + type + " D, A;", model));
  };
  add("rni", Integral<T, FE_TONEAREST>);
  add("rzi", Integral<T, FE_TOWARDZERO>);
  add("rmi", Integral<T, FE_DOWNWARD>);
  add("rpi", Integral<T, FE_UPWARD>);
}

void AddBetweenFloats(std::vector<PtxCase>& cases) {
  AddRounded<float, double>("f32", "f64", cases);
  cases.push_back(Each(
      "cvt.f", "cvt.f64.f32 D, A;", +[](float a) { return static_cast<double>(a); }));
  cases.push_back(Each(
      "cvt.f", "cvt.sat.f32.f32 D, A;", +[](float a) {
        if (!(a > 0)) return 0.0F;
        return a > 1 ? 1.0F : a;
      }));
  // 10 bits of fraction, ties away from zero.
  cases.push_back(Drawn(DrawNumber<float>, Each(
                                               "cvt.f", "cvt.rna.tf32.f32 D, A;", +[](float a) {
                                                 const auto bits = std::bit_cast<std::uint32_t>(a);
                                                 if (std::isinf(a)) return bits;
                                                 return (bits + 0x1000) & ~std::uint32_t{0x1fff};
                                               })));
}

void AddHalves(std::vector<PtxCase>& cases) {
  const char* const family = "cvt.f16/bf16";
  cases.push_back(Each(
      family, "cvt.f32.f16 D, A;", +[](Half a) { return static_cast<float>(ToDouble(a)); }));
  cases.push_back(Each(
      family, "cvt.f64.f16 D, A;", +[](Half a) { return ToDouble(a); }));
  cases.push_back(Each(
      family, "cvt.f32.bf16 D, A;", +[](Bfloat a) { return static_cast<float>(ToDouble(a)); }));
  cases.push_back(Each(
      family, "cvt.rn.f16.f32 D, A;", +[](float a) { return ToHalf(Wide{a}); }));
  cases.push_back(Each(
      family, "cvt.rn.f16.f64 D, A;", +[](double a) { return ToHalf(Wide{a}); }));
  cases.push_back(Each(
      family, "cvt.rn.bf16.f32 D, A;", +[](float a) { return ToBfloat(Wide{a}); }));
  cases.push_back(Each(
      family, "cvt.rn.f16x2.f32 D, A, B;", +[](float a, float b) {
        return Half2{ToHalf(Wide{b}), ToHalf(Wide{a})};  // the first operand is the upper half
      }));
  cases.push_back(Each(
      family, "cvt.rn.bf16x2.f32 D, A, B;", +[](float a, float b) {
        return Bfloat2{ToBfloat(Wide{b}), ToBfloat(Wide{a})};
      }));
  cases.push_back(Each(
      family, "cvt.rn.f16.s32 D, A;",
      +[](std::int32_t a) { return ToHalf(Wide{static_cast<double>(a)}); }));
  cases.push_back(Each(
      family, "cvt.rn.f16.u16 D, A;",
      +[](std::uint16_t a) { return ToHalf(Wide{static_cast<double>(a)}); }));
  cases.push_back(Drawn(
      [](std::mt19937_64& random, Operands& operands) {
        operands[0] =
            ToWord(ToHalf(Wide{std::uniform_real_distribution<double>(-999, 999)(random)}));
      },
      Each(
          family, "cvt.rzi.s32.f16 D, A;",
          +[](Half a) { return static_cast<std::int32_t>(ToDouble(a)); })));
}

}  // namespace

std::vector<PtxCase> ConversionCases() {
  std::vector<PtxCase> cases;
  AddBetweenIntegers(cases);
  AddToIntegers<float>("f32", cases);
  AddToIntegers<double>("f64", cases);
  AddFromIntegers<float>("f32", cases);
  AddFromIntegers<double>("f64", cases);
  AddToIntegral<float>("f32", cases);
  AddToIntegral<double>("f64", cases);
  AddBetweenFloats(cases);
  AddHalves(cases);
  return cases;
}

}  // namespace torpor::conformance
