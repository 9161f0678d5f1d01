// Comparisons and selections: PTX ISA, section "Comparison and Selection Instructions".
#include <cmath>

#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

using U32 = std::uint32_t;

template <typename T>
constexpr const char* kFamily = "setp.int";
template <>
constexpr const char* kFamily<float> = "setp.f32";
template <>
constexpr const char* kFamily<double> = "setp.f64";

template <typename T>
PtxCase Setp(const std::string& comparison, const std::string& type, U32 (*model)(T, T)) {
  // Equal operands are rare by themselves.
  return Drawn(
      [](std::mt19937_64& random, Operands& operands) {
        operands[0] = ToWord(Draw<T>(random));
        operands[1] = random() % 4 == 0 ? operands[0] : ToWord(Draw<T>(random));
      },
      Each(kFamily<T>, "setp." + comparison + "." + type + " P, A, B; selp.u32 D, 1, 0, P;",
           model));
}

template <typename T>
void AddOrdered(const std::string& type, std::vector<PtxCase>& cases) {
  cases.push_back(Setp<T>("eq", type, [](T a, T b) { return U32{a == b}; }));
  cases.push_back(Setp<T>("ne", type, [](T a, T b) { return U32{a < b || a > b}; }));
  cases.push_back(Setp<T>("lt", type, [](T a, T b) { return U32{a < b}; }));
  cases.push_back(Setp<T>("le", type, [](T a, T b) { return U32{a <= b}; }));
  cases.push_back(Setp<T>("gt", type, [](T a, T b) { return U32{a > b}; }));
  cases.push_back(Setp<T>("ge", type, [](T a, T b) { return U32{a >= b}; }));
}

template <typename T>
void AddNamesOfUnsigned(const std::string& type, std::vector<PtxCase>& cases) {
  cases.push_back(Setp<T>("lo", type, [](T a, T b) { return U32{a < b}; }));
  cases.push_back(Setp<T>("ls", type, [](T a, T b) { return U32{a <= b}; }));
  cases.push_back(Setp<T>("hi", type, [](T a, T b) { return U32{a > b}; }));
  cases.push_back(Setp<T>("hs", type, [](T a, T b) { return U32{a >= b}; }));
}

template <typename T>
void AddEqual(const std::string& type, std::vector<PtxCase>& cases) {
  cases.push_back(Setp<T>("eq", type, [](T a, T b) { return U32{a == b}; }));
  cases.push_back(Setp<T>("ne", type, [](T a, T b) { return U32{a != b}; }));
}

// True, too, where one is not a number.
template <typename T>
void AddUnordered(const std::string& type, std::vector<PtxCase>& cases) {
  cases.push_back(Setp<T>("equ", type, [](T a, T b) { return U32{!(a < b || a > b)}; }));
  cases.push_back(Setp<T>("neu", type, [](T a, T b) { return U32{a != b}; }));
  cases.push_back(Setp<T>("ltu", type, [](T a, T b) { return U32{!(a >= b)}; }));
  cases.push_back(Setp<T>("leu", type, [](T a, T b) { return U32{!(a > b)}; }));
  cases.push_back(Setp<T>("gtu", type, [](T a, T b) { return U32{!(a <= b)}; }));
  cases.push_back(Setp<T>("geu", type, [](T a, T b) { return U32{!(a < b)}; }));
  cases.push_back(
      Setp<T>("num", type, [](T a, T b) { return U32{!std::isnan(a) && !std::isnan(b)}; }));
  cases.push_back(
      Setp<T>("nan", type, [](T a, T b) { return U32{std::isnan(a) || std::isnan(b)}; }));
}

void AddCombined(std::vector<PtxCase>& cases) {
  using S = std::int32_t;
  cases.push_back(Each(
      "setp.int", "setp.lt.s32 Q, C, 0; setp.lt.and.s32 P, A, B, Q; selp.u32 D, 1, 0, P;",
      +[](S a, S b, S c) { return U32{a < b && c < 0}; }));
  cases.push_back(Each(
      "setp.int", "setp.lt.s32 Q, C, 0; setp.eq.or.s32 P, A, B, !Q; selp.u32 D, 1, 0, P;",
      +[](S a, S b, S c) { return U32{a == b || c >= 0}; }));
  cases.push_back(Each(
      "setp.int",
      "setp.lt.s32 Q, C, 0; setp.gt.xor.s32 P|Q, A, B, Q; selp.u32 T0, 1, 0, P;"
      " selp.u32 T1, 2, 0, Q; or.b32 D, T0, T1;",
      +[](S a, S b, S c) {
        const bool q = c < 0;
        return U32{(a > b) != q} | U32{(a <= b) != q} << 1;
      }));
  cases.push_back(Each(
      "setp.f32", "setp.lt.ftz.f32 P, A, B; selp.u32 D, 1, 0, P;", +[](float a, float b) {
        const auto flushed = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? 0.0F : x; };
        return U32{flushed(a) < flushed(b)};
      }));
}

void AddSet(std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      "set", "set.lt.u32.s32 D, A, B;",
      +[](std::int32_t a, std::int32_t b) { return a < b ? ~U32{0} : U32{0}; }));
  cases.push_back(Each(
      "set", "set.ge.f32.f32 D, A, B;", +[](float a, float b) { return a >= b ? 1.0F : 0.0F; }));
  cases.push_back(Each(
      "set", "set.neu.s32.f64 D, A, B;",
      +[](double a, double b) { return a != b ? ~U32{0} : U32{0}; }));
}

// Selections move bits: whatever type they name, no bit of a not-a-number may change.
template <typename Bits>
void AddSelections(const char* family, const std::string& type, std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      family, "setp.lt.s32 P, C, 0; selp." + type + " D, A, B, P;",
      +[](Bits a, Bits b, std::int32_t c) { return c < 0 ? a : b; }));
}

void AddSelectionsBySign(std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      "slct", "slct.b32.s32 D, A, B, C;",
      +[](U32 a, U32 b, std::int32_t c) { return c >= 0 ? a : b; }));
  cases.push_back(Each(
      "slct", "slct.b64.f32 D, A, B, C;",
      +[](std::uint64_t a, std::uint64_t b, float c) { return c >= 0 ? a : b; }));
}

}  // namespace

std::vector<PtxCase> ComparisonCases() {
  std::vector<PtxCase> cases;
  AddOrdered<std::int16_t>("s16", cases);
  AddOrdered<std::uint16_t>("u16", cases);
  AddOrdered<std::int32_t>("s32", cases);
  AddOrdered<U32>("u32", cases);
  AddOrdered<std::int64_t>("s64", cases);
  AddOrdered<std::uint64_t>("u64", cases);
  AddOrdered<float>("f32", cases);
  AddOrdered<double>("f64", cases);
  AddNamesOfUnsigned<U32>("u32", cases);
  AddEqual<std::uint16_t>("b16", cases);
  AddEqual<U32>("b32", cases);
  AddEqual<std::uint64_t>("b64", cases);
  AddUnordered<float>("f32", cases);
  AddUnordered<double>("f64", cases);
  AddCombined(cases);
  AddSet(cases);
  AddSelections<std::uint16_t>("selp.int", "b16", cases);
  AddSelections<std::uint16_t>("selp.int", "u16", cases);
  AddSelections<U32>("selp.int", "b32", cases);
  AddSelections<U32>("selp.int", "s32", cases);
  AddSelections<std::uint64_t>("selp.int", "u64", cases);
  AddSelections<U32>("selp.f32", "f32", cases);
  AddSelections<std::uint64_t>("selp.f64", "f64", cases);
  AddSelectionsBySign(cases);
  return cases;
}

}  // namespace torpor::conformance
