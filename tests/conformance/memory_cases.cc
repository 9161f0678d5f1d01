// Loads and stores of every space, width and vector, address conversions, moves: PTX ISA, section
// "Data Movement and Conversion Instructions". What is stored is loaded again in another form.
#include "tests/conformance/address_space.h"
#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr AddressSpace kSpaces[] = {kGlobal,        kShared,        kLocal,
                                    kGenericGlobal, kGenericShared, kGenericLocal};

std::string FamilyOf(const AddressSpace& space) {
  return *space.name != 0 ? "ld/st" + std::string(space.name) : "ld/st(generic)";
}

template <typename R, typename... As>
void AddInAllSpaces(const char* text, R (*model)(As...), std::vector<PtxCase>& cases) {
  for (const AddressSpace& space : kSpaces)
    cases.push_back(Each(FamilyOf(space), In(space, text), model));
}

U64 Pair(U32 low, U32 high) { return U64{high} << 32 | low; }

void AddWidths(std::vector<PtxCase>& cases) {
  AddInAllSpaces(
      "st$S.u32 [$A], A; ld$S.u32 D, [$A];", +[](U32 a) { return a; }, cases);
  AddInAllSpaces(
      "st$S.u64 [$A+8], A; ld$S.u64 D, [$A+8];", +[](U64 a) { return a; }, cases);
  AddInAllSpaces(
      "st$S.f32 [$A], A; ld$S.b32 D, [$A];", +[](U32 a) { return a; }, cases);
  AddInAllSpaces(
      "st$S.b64 [$A], A; ld$S.f64 D, [$A];", +[](U64 a) { return a; }, cases);
  AddInAllSpaces(
      "st$S.u16 [$A+2], A; ld$S.u16 D, [$A+2];", +[](U16 a) { return a; }, cases);
  // Narrow loads extend to the register, narrow stores cut.
  AddInAllSpaces(
      "st$S.u32 [$A], A; ld$S.s8 D, [$A+1];",
      +[](U32 a) { return static_cast<std::int32_t>(static_cast<std::int8_t>(a >> 8)); }, cases);
  AddInAllSpaces(
      "st$S.u32 [$A], A; ld$S.u8 D, [$A+3];", +[](U32 a) { return a >> 24; }, cases);
  AddInAllSpaces(
      "st$S.u32 [$A], A; ld$S.s16 D, [$A+2];",
      +[](U32 a) { return static_cast<std::int32_t>(static_cast<std::int16_t>(a >> 16)); }, cases);
  AddInAllSpaces(
      "st$S.u32 [$A], A; st$S.u8 [$A+1], B; ld$S.u32 D, [$A];",
      +[](U32 a, U32 b) { return (a & 0xffff00ff) | (b & 255) << 8; }, cases);
}

void AddVectors(std::vector<PtxCase>& cases) {
  AddInAllSpaces(
      "st$S.v2.u32 [$A], {A, B}; ld$S.u64 D, [$A];", +[](U32 a, U32 b) { return Pair(a, b); },
      cases);
  AddInAllSpaces(
      "st$S.u64 [$A+16], A; ld$S.v2.u32 {T0, T1}, [$A+16]; xor.b32 D, T0, T1;",
      +[](U64 a) { return static_cast<U32>(a) ^ static_cast<U32>(a >> 32); }, cases);
  AddInAllSpaces(
      "st$S.v4.u32 [$A], {A, B, C, A}; ld$S.v2.u64 {X0, X1}, [$A]; xor.b64 D, X0, X1;",
      +[](U32 a, U32 b, U32 c) { return Pair(a ^ c, b ^ a); }, cases);
  AddInAllSpaces(
      "st$S.v2.b64 [$A], {A, B}; ld$S.v4.f32 {T0, T1, T2, T3}, [$A];"
      " mov.b64 D, {T3, T0};",
      +[](U64 a, U64 b) { return Pair(static_cast<U32>(b >> 32), static_cast<U32>(a)); }, cases);
  AddInAllSpaces(
      "st$S.u32 [$A], A; ld$S.v4.u8 {H0, H1, H2, H3}, [$A]; cvt.u32.u16 T0, H3;"
      " cvt.u32.u16 T1, H1; mad.lo.u32 D, T0, 1000, T1;",
      +[](U32 a) { return (a >> 24) * 1000 + (a >> 8 & 255); }, cases);
  AddInAllSpaces(
      "st$S.v4.b8 [$A], {A, B, C, A}; ld$S.u32 D, [$A];",
      +[](U16 a, U16 b, U16 c) {
        return U32{a & 255U} | (b & 255U) << 8 | (c & 255U) << 16 | (a & 255U) << 24;
      },
      cases);
  AddInAllSpaces(
      "st$S.v2.u16 [$A+4], {A, B}; ld$S.v2.s16 {H0, H1}, [$A+4]; mov.b32 D, {H1, H0};",
      +[](U16 a, U16 b) { return U32{b} | U32{a} << 16; }, cases);
}

// Ordering does not change a thread's own values.
void AddOrderings(std::vector<PtxCase>& cases) {
  const auto same = +[](U32 a) { return a; };
  for (const char* store :
       {"volatile", "relaxed.gpu", "release.gpu", "release.sys", "relaxed.cta"}) {
    const bool is_volatile = std::string_view(store) == "volatile";
    for (const char* load :
         {"volatile", "relaxed.gpu", "acquire.gpu", "acquire.sys", "acquire.cta"})
      cases.push_back(Each(
          is_volatile ? "ld/st.volatile" : "ld/st.ordered",
          std::string("st.") + store + ".global.u32 [GG], A; ld." + load + ".global.u32 D, [GG];",
          same));
  }
  cases.push_back(Each("ld/st.volatile",
                       "st.volatile.shared.f32 [SS], A; ld.volatile.shared.f32 D, [SS];", same));
  cases.push_back(Each(
      "ld/st.ordered",
      "st.relaxed.gpu.global.v2.u32 [GG], {A, B}; ld.relaxed.gpu.global.v2.u32 {T0, T1}, [GG]; "
      "sub.u32 D, T0, T1;",
      +[](U32 a, U32 b) { return a - b; }));
  for (const char* cache : {"ca", "cg", "cs", "lu", "cv"})
    cases.push_back(Each("ld/st.cached",
                         std::string("st.global.u32 [GG], A; ld.") + cache + ".global.u32 D, [GG];",
                         same));
  for (const char* cache : {"wb", "cg", "cs", "wt"})
    cases.push_back(Each("ld/st.cached",
                         std::string("st.") + cache + ".global.u32 [GG], A; ld.global.u32 D, [GG];",
                         same));
  // What is read by .nc was written before the kernel.
  cases.push_back(Each(
      "ld.global.nc", "ld.global.nc.u32 D, [GG+32];", +[]() { return U32{0}; }));
  cases.push_back(Each(
      "ld.global.nc", "ld.global.nc.v4.u32 {T0, T1, T2, T3}, [GG+32]; or.b32 D, T0, T3;",
      +[]() { return U32{0}; }));
  for (const char* fence : {"membar.cta", "membar.gl", "membar.sys", "fence.sc.cta", "fence.sc.gpu",
                            "fence.acq_rel.cta", "fence.acq_rel.gpu", "fence.acq_rel.sys"})
    cases.push_back(
        Each(*fence == 'm' ? "membar" : "fence",
             std::string("st.global.u32 [GG], A; ") + fence + "; ld.global.u32 D, [GG];", same));
}

U32 ConstantWord(std::size_t at) {
  U32 word = 0;
  for (std::size_t i = 0; i < 4; ++i) word |= U32{ConstantByte(at + i)} << (8 * i);
  return word;
}

void AddConstants(std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      "ld.const", "ld.const.u32 D, [K+12];", +[]() { return ConstantWord(12); }));
  cases.push_back(Each(
      "ld.const", "ld.const.u16 H0, [K+2]; cvt.u32.u16 D, H0;",
      +[]() { return ConstantWord(2) & 0xffff; }));
  cases.push_back(Each(
      "ld.const",
      "and.b32 T0, A, 60; cvt.u64.u32 X0, T0; mov.u64 X1, K; add.u64 X0, X0, X1;"
      " ld.const.f32 D, [X0];",
      +[](U32 a) { return ConstantWord(a & 60); }));
  cases.push_back(Each(
      "ld.const", "ld.const.v2.u32 {T0, T1}, [K+8]; xor.b32 D, T0, T1;",
      +[]() { return ConstantWord(8) ^ ConstantWord(12); }));
}

void AddAddresses(std::vector<PtxCase>& cases) {
  const auto same = +[](U32 a) { return a; };
  cases.push_back(
      Each("cvta", "cvta.to.global.u64 X0, GA; st.global.u32 [X0], A; ld.u32 D, [GA];", same));
  cases.push_back(
      Each("cvta", "cvta.to.local.u64 X0, LA; st.local.u32 [X0], A; ld.u32 D, [LA];", same));
  cases.push_back(
      Each("cvta", "cvta.to.shared.u64 X0, SA; st.shared.u32 [X0], A; ld.u32 D, [SA];", same));
  cases.push_back(
      Each("cvta", "cvta.global.u64 X0, GG; st.u32 [X0], A; ld.global.u32 D, [GG];", same));
  cases.push_back(Each(
      "isspacep",
      "isspacep.shared P, SA; isspacep.global Q, SA; selp.u32 T0, 1, 0, P; selp.u32 T1, 2, 0, Q; "
      "or.b32 D, T0, T1;",
      +[]() { return U32{1}; }));
  cases.push_back(Each(
      "isspacep",
      "isspacep.local P, LA; isspacep.global Q, GA; selp.u32 T0, 1, 0, P; selp.u32 T1, 2, 0, Q; "
      "or.b32 D, T0, T1;",
      +[]() { return U32{3}; }));
}

void AddMoves(std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      "mov", "mov.u32 D, A;", +[](U32 a) { return a; }));
  cases.push_back(Each(
      "mov", "mov.b64 D, A;", +[](U64 a) { return a; }));
  cases.push_back(Each(
      "mov", "mov.u16 D, A;", +[](U16 a) { return a; }));
  cases.push_back(Each(
      "mov", "mov.f32 D, 0f3FC00000;", +[]() { return 1.5F; }));
  cases.push_back(Each(
      "mov", "mov.f64 D, 0d3FF8000000000000;", +[]() { return 1.5; }));
  cases.push_back(Each(
      "mov", "setp.lt.s32 Q, A, 0; mov.pred P, Q; selp.u32 D, 1, 0, P;",
      +[](std::int32_t a) { return U32{a < 0}; }));
  cases.push_back(Each(
      "mov", "mov.b32 {H0, H1}, A; mov.b32 D, {H1, H0};",
      +[](U32 a) { return a << 16 | a >> 16; }));
  cases.push_back(Each(
      "mov", "mov.b64 {T0, T1}, A; mov.b64 D, {T1, T0};",
      +[](U64 a) { return a << 32 | a >> 32; }));
}

}  // namespace

std::vector<PtxCase> MemoryCases() {
  std::vector<PtxCase> cases;
  AddWidths(cases);
  AddVectors(cases);
  AddOrderings(cases);
  AddConstants(cases);
  AddAddresses(cases);
  AddMoves(cases);
  return cases;
}

}  // namespace torpor::conformance
