// Integer arithmetic: PTX ISA, sections "Integer Arithmetic Instructions" and "Extended-Precision
// Integer Arithmetic Instructions".
#include <limits>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

template <typename T>
struct Wider;
template <>
struct Wider<std::int16_t> {
  using Type = std::int32_t;
};
template <>
struct Wider<std::uint16_t> {
  using Type = std::uint32_t;
};
template <>
struct Wider<std::int32_t> {
  using Type = std::int64_t;
};
template <>
struct Wider<std::uint32_t> {
  using Type = std::uint64_t;
};
template <>
struct Wider<std::int64_t> {
  using Type = __int128;
};
template <>
struct Wider<std::uint64_t> {
  using Type = unsigned __int128;
};

// Wide enough that nothing here overflows.
using Exact = __int128;

template <typename T>
T Low(Exact value) {
  return static_cast<T>(value);
}

template <typename T>
T High(T a, T b) {
  using W = typename Wider<T>::Type;
  return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
}

// No division by zero, and none that overflows: PTX leaves both open.
template <typename T>
void DrawDivision(std::mt19937_64& random, Operands& operands) {
  T divisor = Draw<T>(random);
  if (divisor == 0 || divisor == static_cast<T>(-1)) divisor = 7;
  operands = {ToWord(Draw<T>(random)), ToWord(divisor)};
}

template <typename T>
void AddArithmetic(const std::string& type, std::vector<PtxCase>& cases) {
  const auto two = [&](const char* family, const char* name, T (*model)(T, T)) {
    cases.push_back(Each(family, std::string(name) + "." + type + " D, A, B;", model));
  };
  two("add.int", "add", [](T a, T b) { return Low<T>(Exact{a} + Exact{b}); });
  two("sub.int", "sub", [](T a, T b) { return Low<T>(Exact{a} - Exact{b}); });
  two("mul.int", "mul.lo", [](T a, T b) {
    return Low<T>(static_cast<Exact>(static_cast<unsigned __int128>(Exact{a}) *
                                     static_cast<unsigned __int128>(Exact{b})));
  });
  two("mul.int", "mul.hi", [](T a, T b) { return High<T>(a, b); });
  two("min.int", "min", [](T a, T b) { return a < b ? a : b; });
  two("max.int", "max", [](T a, T b) { return a < b ? b : a; });
  two("div.int", "div", [](T a, T b) { return Low<T>(Exact{a} / Exact{b}); });
  cases.back().draw = DrawDivision<T>;
  two("rem.int", "rem", [](T a, T b) { return Low<T>(Exact{a} % Exact{b}); });
  cases.back().draw = DrawDivision<T>;
  cases.push_back(Each(
      "mad.int", "mad.lo." + type + " D, A, B, C;", +[](T a, T b, T c) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(std::uint64_t{static_cast<U>(a)} * static_cast<U>(b) +
                                             static_cast<U>(c)));
      }));
  cases.push_back(Each(
      "mad.int", "mad.hi." + type + " D, A, B, C;",
      +[](T a, T b, T c) { return Low<T>(Exact{High<T>(a, b)} + Exact{c}); }));
  cases.push_back(Each(
      "sad.int", "sad." + type + " D, A, B, C;", +[](T a, T b, T c) {
        const Exact difference = Exact{a} - Exact{b};
        return Low<T>((difference < 0 ? -difference : difference) + Exact{c});
      }));
}

template <typename T>
void AddSigned(const std::string& type, std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      "abs.int", "abs." + type + " D, A;",
      +[](T a) { return Low<T>(a < 0 ? -Exact{a} : Exact{a}); }));
  cases.push_back(Each(
      "neg.int", "neg." + type + " D, A;", +[](T a) { return Low<T>(-Exact{a}); }));
}

template <typename T>
void AddWide(const std::string& type, std::vector<PtxCase>& cases) {
  using W = typename Wider<T>::Type;
  cases.push_back(Each(
      "mul.int", "mul.wide." + type + " D, A, B;",
      +[](T a, T b) { return static_cast<W>(Exact{a} * Exact{b}); }));
  cases.push_back(Each(
      "mad.int", "mad.wide." + type + " D, A, B, C;",
      +[](T a, T b, W c) { return Low<W>(Exact{a} * Exact{b} + Exact{c}); }));
}

std::int32_t Saturated(Exact value) {
  using Limits = std::numeric_limits<std::int32_t>;
  if (value > Limits::max()) return Limits::max();
  return value < Limits::min() ? Limits::min() : static_cast<std::int32_t>(value);
}

// The low 24 bits, extended with their sign.
std::int64_t Signed24(std::int32_t value) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(value) << 8) >> 8;
}

void AddSaturating(std::vector<PtxCase>& cases) {
  using S = std::int32_t;
  cases.push_back(Each(
      "add.int", "add.sat.s32 D, A, B;", +[](S a, S b) { return Saturated(Exact{a} + b); }));
  cases.push_back(Each(
      "sub.int", "sub.sat.s32 D, A, B;", +[](S a, S b) { return Saturated(Exact{a} - b); }));
  cases.push_back(Each(
      "mad.int", "mad.hi.sat.s32 D, A, B, C;",
      +[](S a, S b, S c) { return Saturated(Exact{High<S>(a, b)} + c); }));
}

void AddOf24Bits(std::vector<PtxCase>& cases) {
  using S = std::int32_t;
  using U = std::uint32_t;
  cases.push_back(Each(
      "mul24", "mul24.lo.s32 D, A, B;",
      +[](S a, S b) { return static_cast<S>(Signed24(a) * Signed24(b)); }));
  cases.push_back(Each(
      "mul24", "mul24.hi.s32 D, A, B;",
      +[](S a, S b) { return static_cast<S>(Signed24(a) * Signed24(b) >> 16); }));
  cases.push_back(Each(
      "mul24", "mul24.lo.u32 D, A, B;",
      +[](U a, U b) { return static_cast<U>(std::uint64_t{a & 0xffffff} * (b & 0xffffff)); }));
  cases.push_back(Each(
      "mad24", "mad24.lo.s32 D, A, B, C;",
      +[](S a, S b, S c) { return static_cast<S>(Signed24(a) * Signed24(b) + c); }));
}

void AddExtended(std::vector<PtxCase>& cases) {
  using U = std::uint64_t;
  cases.push_back(Each(
      "add.int",
      "mov.b64 {T0, T1}, A; mov.b64 {T2, T3}, B; add.cc.u32 T0, T0, T2;"
      " addc.u32 T1, T1, T3; mov.b64 D, {T0, T1};",
      +[](U a, U b) { return a + b; }));
  cases.push_back(Each(
      "sub.int",
      "mov.b64 {T0, T1}, A; mov.b64 {T2, T3}, B; sub.cc.u32 T0, T0, T2;"
      " subc.u32 T1, T1, T3; mov.b64 D, {T0, T1};",
      +[](U a, U b) { return a - b; }));
  // 32 x 32 + 64 bits, by halves.
  cases.push_back(Each(
      "mad.int",
      "mov.b64 {T0, T1}, C; mad.lo.cc.u32 T0, A, B, T0;"
      " madc.hi.u32 T1, A, B, T1; mov.b64 D, {T0, T1};",
      +[](std::uint32_t a, std::uint32_t b, U c) { return U{a} * b + c; }));
}

template <typename A, typename B>
std::int32_t DotOfBytes(std::uint32_t a, std::uint32_t b, std::int32_t c) {
  auto sum = static_cast<std::uint32_t>(c);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<std::uint32_t>(int{static_cast<A>(a >> i)} * int{static_cast<B>(b >> i)});
  return static_cast<std::int32_t>(sum);
}

// Two 16-bit numbers times the low or high two bytes.
template <typename A, typename B, int kFirstByte>
std::int32_t DotOfHalves(std::uint32_t a, std::uint32_t b, std::int32_t c) {
  auto sum = static_cast<std::uint32_t>(c);
  for (int i = 0; i < 2; ++i)
    sum += static_cast<std::uint32_t>(int{static_cast<A>(a >> (16 * i))} *
                                      int{static_cast<B>(b >> (8 * (kFirstByte + i)))});
  return static_cast<std::int32_t>(sum);
}

void AddDotProducts(std::vector<PtxCase>& cases) {
  using S8 = std::int8_t;
  using U8 = std::uint8_t;
  const auto add = [&](const char* text,
                       std::int32_t (*model)(std::uint32_t, std::uint32_t, std::int32_t)) {
    cases.push_back(Each("dp", text, model));
  };
  add("dp4a.s32.s32 D, A, B, C;", DotOfBytes<S8, S8>);
  add("dp4a.u32.u32 D, A, B, C;", DotOfBytes<U8, U8>);
  add("dp4a.s32.u32 D, A, B, C;", DotOfBytes<S8, U8>);
  add("dp4a.u32.s32 D, A, B, C;", DotOfBytes<U8, S8>);
  add("dp2a.lo.s32.s32 D, A, B, C;", DotOfHalves<std::int16_t, S8, 0>);
  add("dp2a.hi.s32.u32 D, A, B, C;", DotOfHalves<std::int16_t, U8, 2>);
  add("dp2a.lo.u32.u32 D, A, B, C;", DotOfHalves<std::uint16_t, U8, 0>);
  add("dp2a.hi.u32.s32 D, A, B, C;", DotOfHalves<std::uint16_t, S8, 2>);
}

}  // namespace

std::vector<PtxCase> IntegerCases() {
  std::vector<PtxCase> cases;
  AddArithmetic<std::int16_t>("s16", cases);
  AddArithmetic<std::uint16_t>("u16", cases);
  AddArithmetic<std::int32_t>("s32", cases);
  AddArithmetic<std::uint32_t>("u32", cases);
  AddArithmetic<std::int64_t>("s64", cases);
  AddArithmetic<std::uint64_t>("u64", cases);
  AddSigned<std::int16_t>("s16", cases);
  AddSigned<std::int32_t>("s32", cases);
  AddSigned<std::int64_t>("s64", cases);
  AddWide<std::int16_t>("s16", cases);
  AddWide<std::uint16_t>("u16", cases);
  AddWide<std::int32_t>("s32", cases);
  AddWide<std::uint32_t>("u32", cases);
  AddSaturating(cases);
  AddOf24Bits(cases);
  AddExtended(cases);
  AddDotProducts(cases);
  return cases;
}

}  // namespace torpor::conformance
