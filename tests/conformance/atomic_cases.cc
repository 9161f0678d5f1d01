// Atomic operations: PTX ISA, section "Parallel Synchronization and Communication Instructions".
// Each lane at an address of its own, where the order is known: the result holds what was there
// before and, above it, what is there then. And all lanes of a warp at one.
#include <bit>
#include <cmath>

#include "tests/conformance/address_space.h"
#include "tests/conformance/ptx_case.h"
#include "tests/conformance/word_operations.h"

namespace torpor::conformance {
namespace {

using U32 = std::uint32_t;
using S32 = std::int32_t;
using U64 = std::uint64_t;

U64 BeforeAndAfter(U32 before, U32 after) { return U64{after} << 32 | before; }

// Words of 32 bits: B lies there, A is the operand.
template <typename T, T (*kModel)(T before, T operand)>
U64 Word32(T a, T b) {
  return BeforeAndAfter(std::bit_cast<U32>(b), std::bit_cast<U32>(kModel(b, a)));
}

constexpr const char* kWord32 =
    "st$S.u32 [$A], B; atom$S.$N T0, [$A], A; ld$S.u32 T1, [$A]; mov.b64 D, {T0, T1};";

template <typename T, T (*kModel)(T, T)>
void Add32(const std::string& name, std::vector<PtxCase>& cases) {
  for (const AddressSpace& space : {kGlobal, kShared, kGenericGlobal, kGenericShared})
    cases.push_back(Each("atom", Filled(In(space, kWord32), "$N", name), Word32<T, kModel>));
  cases.push_back(Each("red",
                       "st.global.u32 [GG], B; red.global." + name +
                           " [GG], A; ld.global.u32 T1, [GG]; mov.b64 D, {B, T1};",
                       Word32<T, kModel>));
}

template <U64 (*kModel)(U64, U64), bool kAfter>
U64 Word64(U64 a, U64 b) {
  return kAfter ? kModel(b, a) : b;
}

template <U64 (*kModel)(U64, U64)>
void Add64(const std::string& name, std::vector<PtxCase>& cases) {
  const std::string work = "st.global.u64 [GG], B; atom.global." + name + " X0, [GG], A;";
  cases.push_back(Each("atom", work + " mov.b64 D, X0;", Word64<kModel, false>));
  cases.push_back(Each("atom", work + " ld.global.u64 D, [GG];", Word64<kModel, true>));
  cases.push_back(Each(
      "atom", "st.shared.u64 [SS], B; atom.shared." + name + " X0, [SS], A; ld.shared.u64 D, [SS];",
      Word64<kModel, true>));
}

U32 Second(U32, U32 b) { return b; }
U32 Incremented(U32 a, U32 b) { return a >= b ? 0 : a + 1; }
U32 Decremented(U32 a, U32 b) { return a == 0 || a > b ? b : a - 1; }
U64 Sum64(U64 a, U64 b) { return a + b; }
U64 And64(U64 a, U64 b) { return a & b; }
U64 Or64(U64 a, U64 b) { return a | b; }
U64 Xor64(U64 a, U64 b) { return a ^ b; }
U64 SignedLeast64(U64 a, U64 b) {
  return static_cast<U64>(Least(static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)));
}

void AddIntegers(std::vector<PtxCase>& cases) {
  Add32<U32, Sum>("add.u32", cases);
  Add32<U32, Sum>("add.s32", cases);
  Add32<U32, And>("and.b32", cases);
  Add32<U32, Or>("or.b32", cases);
  Add32<U32, Xor>("xor.b32", cases);
  Add32<U32, Incremented>("inc.u32", cases);
  Add32<U32, Decremented>("dec.u32", cases);
  Add32<U32, Least<U32>>("min.u32", cases);
  Add32<U32, Greatest<U32>>("max.u32", cases);
  Add32<S32, Least<S32>>("min.s32", cases);
  Add32<S32, Greatest<S32>>("max.s32", cases);
  Add64<Sum64>("add.u64", cases);
  Add64<And64>("and.b64", cases);
  Add64<Or64>("or.b64", cases);
  Add64<Xor64>("xor.b64", cases);
  Add64<Least<U64>>("min.u64", cases);
  Add64<Greatest<U64>>("max.u64", cases);
  Add64<SignedLeast64>("min.s64", cases);
}

void AddExchanges(std::vector<PtxCase>& cases) {
  for (const AddressSpace& space : {kGlobal, kShared}) {
    cases.push_back(
        Each("atom", Filled(In(space, kWord32), "$N", "exch.b32"), Word32<U32, Second>));
    // Half of the comparisons are met.
    cases.push_back(Drawn(
        [](std::mt19937_64& random, Operands& operands) {
          operands = {random() & 0xffffffff, random() & 0xffffffff, random() & 0xffffffff};
          if (random() % 2 == 0) operands[2] = operands[1];
        },
        Each(
            "atom",
            In(space,
               "st$S.u32 [$A], B; atom$S.cas.b32 T0, [$A], C, A; ld$S.u32 T1, [$A];"
               " mov.b64 D, {T0, T1};"),
            +[](U32 a, U32 b, U32 c) { return BeforeAndAfter(b, b == c ? a : b); })));
  }
  cases.push_back(Each(
      "atom", "st.global.u64 [GG], B; atom.global.cas.b64 X0, [GG], B, A; ld.global.u64 D, [GG];",
      +[](U64 a, U64) { return a; }));
  cases.push_back(Each(
      "atom", "st.global.u64 [GG], B; atom.global.exch.b64 D, [GG], A;",
      +[](U64, U64 b) { return b; }));
}

// Numbers whose sum is exact, whatever the order.
template <typename T>
void DrawSmall(std::mt19937_64& random, Operands& operands) {
  for (Word& operand : operands)
    operand = ToWord(static_cast<T>(static_cast<int>(random() % 4096) - 2048) / 4);
}

void AddFloats(std::vector<PtxCase>& cases) {
  const auto add32 = +[](float a, float b) {
    return BeforeAndAfter(std::bit_cast<U32>(b), std::bit_cast<U32>(a + b));
  };
  for (const AddressSpace& space : {kGlobal, kShared}) {
    cases.push_back(
        Drawn(DrawSmall<float>, Each("atom", Filled(In(space, kWord32), "$N", "add.f32"), add32)));
    cases.push_back(Drawn(
        DrawSmall<double>,
        Each(
            "atom", In(space, "st$S.f64 [$A], B; atom$S.add.f64 X0, [$A], A; ld$S.f64 D, [$A];"),
            +[](double a, double b) { return a + b; })));
  }
  cases.push_back(Each(
      "atom",
      "st.global.b32 [GG], B; atom.global.add.noftz.f16x2 T0, [GG], A; ld.global.b32 D, [GG];",
      +[](Half2 a, Half2 b) {
        return Half2{ToHalf(Wide{ToDouble(a.low)} + Wide{ToDouble(b.low)}),
                     ToHalf(Wide{ToDouble(a.high)} + Wide{ToDouble(b.high)})};
      }));
}

void AddScopes(std::vector<PtxCase>& cases) {
  for (const char* semantics :
       {"relaxed.cta", "acquire.cta", "release.gpu", "acq_rel.gpu", "acq_rel.sys"})
    cases.push_back(Each("atom",
                         Filled("st.global.u32 [GG], B; atom.$N.global.add.u32 T0, [GG], A;"
                                " ld.global.u32 T1, [GG]; mov.b64 D, {T0, T1};",
                                "$N", semantics),
                         Word32<U32, Sum>));
  cases.push_back(Each("red",
                       "st.global.u32 [GG], B; red.release.gpu.global.and.b32 [GG], A;"
                       " ld.global.u32 T1, [GG]; mov.b64 D, {B, T1};",
                       Word32<U32, And>));
}

// One address for a warp: lane 0 clears it, all add, all read.
void AddContended(std::vector<PtxCase>& cases) {
  const auto sum = +[](int, const std::array<U32, kWarpLanes>& a) {
    U32 total = 0;
    for (const U32 value : a) total += value;
    return total;
  };
  const std::string clear = "setp.eq.u32 P, LANE, 0; @P st.shared.u32 [WS], 0; bar.warp.sync -1; ";
  cases.push_back(Together(
      "atom", clear + "atom.shared.add.u32 T0, [WS], A; bar.warp.sync -1; ld.shared.u32 D, [WS];",
      sum));
  cases.push_back(Together(
      "red", clear + "red.shared.add.u32 [WS], A; bar.warp.sync -1; ld.shared.u32 D, [WS];", sum));
  cases.push_back(Together(
      "atom", clear + "atom.shared.max.u32 T0, [WS], A; bar.warp.sync -1; ld.shared.u32 D, [WS];",
      +[](int, const std::array<U32, kWarpLanes>& a) {
        U32 most = 0;
        for (const U32 value : a) most = Greatest(most, value);
        return most;
      }));
}

}  // namespace

std::vector<PtxCase> AtomicCases() {
  std::vector<PtxCase> cases;
  AddIntegers(cases);
  AddExchanges(cases);
  AddFloats(cases);
  AddScopes(cases);
  AddContended(cases);
  return cases;
}

}  // namespace torpor::conformance
