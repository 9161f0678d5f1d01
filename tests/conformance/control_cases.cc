// Branches, loops and calls: PTX ISA, section "Control Flow Instructions"; and what has no result
// of its own (nanosleep, griddepcontrol).
#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

using U32 = std::uint32_t;
using S32 = std::int32_t;

void AddBranches(std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      "bra",
      "setp.lt.s32 P, A, 0; @P bra NEGATIVE; mul.lo.u32 D, A, 3; bra.uni DONE;"
      " NEGATIVE: xor.b32 D, A, 255; DONE:",
      +[](S32 a) {
        const auto bits = static_cast<U32>(a);
        return a < 0 ? bits ^ 255 : bits * 3;
      }));
  // As many rounds as the lane has bits set in its low byte.
  cases.push_back(Each(
      "bra",
      "and.b32 T0, A, 255; mov.u32 D, 0; NEXT: setp.eq.u32 P, T0, 0; @P bra DONE;"
      " sub.u32 T1, T0, 1; and.b32 T0, T0, T1; mad.lo.u32 D, D, 5, 1; bra NEXT;"
      " DONE:",
      +[](U32 a) {
        U32 result = 0;
        for (a &= 255; a != 0; a &= a - 1) result = result * 5 + 1;
        return result;
      }));
  cases.push_back(Each(
      "brx.idx",
      "and.b32 T0, A, 3; TARGETS: .branchtargets ZERO, ONE, TWO, THREE;"
      " brx.idx T0, TARGETS; ZERO: mov.u32 D, 10; bra DONE;"
      " ONE: mov.u32 D, 21; bra DONE; TWO: mov.u32 D, 32; bra DONE;"
      " THREE: mov.u32 D, 43; DONE:",
      +[](U32 a) { return (a & 3) * 11 + 10; }));
  // Left by some lanes early, from an inner loop.
  cases.push_back(Each(
      "bra",
      "mov.u32 D, 0; mov.u32 T0, 0; OUTER: mov.u32 T1, 0; INNER:"
      " mad.lo.u32 T2, T0, 8, T1; and.b32 T3, A, 63; setp.eq.u32 P, T2, T3;"
      " @P bra FOUND; add.u32 D, D, T2; add.u32 T1, T1, 1; setp.lt.u32 Q, T1, 8;"
      " @Q bra INNER; add.u32 T0, T0, 1; setp.lt.u32 Q, T0, 8; @Q bra OUTER;"
      " FOUND:",
      +[](U32 a) {
        U32 sum = 0;
        for (U32 i = 0; i < (a & 63); ++i) sum += i;
        return sum;
      }));
}

constexpr const char* kFunctions = R"(
.func (.param .b32 r) TRIPLE(.param .b32 a) {
  .reg .b32 x; ld.param.b32 x, [a]; mul.lo.u32 x, x, 3; st.param.b32 [r], x; ret; }
.func (.param .b64 r) WIDE(.param .b64 a, .param .b32 b) {
  .reg .b32 x; .reg .b64 y, z; ld.param.b64 y, [a]; ld.param.b32 x, [b]; cvt.s64.s32 z, x;
  add.s64 y, y, z; st.param.b64 [r], y; ret; }
.func (.param .b32 r) FACTORIAL(.param .b32 a) {
  .reg .b32 x, y; .reg .pred p; ld.param.b32 x, [a]; setp.le.u32 p, x, 1; @p bra ONE;
  sub.u32 y, x, 1;
  { .param .b32 arg; .param .b32 res; st.param.b32 [arg], y;
    call (res), FACTORIAL, (arg); ld.param.b32 y, [res]; }
  mul.lo.u32 x, x, y; st.param.b32 [r], x; ret;
  ONE: mov.u32 x, 1; st.param.b32 [r], x; ret; }
.func (.param .b32 r) NEGATE(.param .b32 a) {
  .reg .b32 x; ld.param.b32 x, [a]; neg.s32 x, x; st.param.b32 [r], x; ret; }
.global .u64 TABLE[2] = {TRIPLE, NEGATE};
)";

PtxCase Calling(PtxCase made) {
  made.family = "call";
  return Declaring(kFunctions, std::move(made));
}

void AddCalls(std::vector<PtxCase>& cases) {
  cases.push_back(Calling(Each(
      "",
      "{ .param .b32 arg; .param .b32 res; st.param.b32 [arg], A;"
      " call.uni (res), TRIPLE, (arg); ld.param.b32 D, [res]; }",
      +[](U32 a) { return a * 3; })));
  cases.push_back(Calling(Each(
      "",
      "{ .param .b64 arg; .param .b32 second; .param .b64 res;"
      " st.param.b64 [arg], A; st.param.b32 [second], B;"
      " call (res), WIDE, (arg, second); ld.param.b64 D, [res]; }",
      +[](std::uint64_t a, S32 b) { return a + static_cast<std::uint64_t>(std::int64_t{b}); })));
  cases.push_back(Calling(Each(
      "",
      "and.b32 T0, A, 7; { .param .b32 arg; .param .b32 res;"
      " st.param.b32 [arg], T0; call (res), FACTORIAL, (arg);"
      " ld.param.b32 D, [res]; }",
      +[](U32 a) {
        U32 product = 1;
        for (U32 i = 2; i <= (a & 7); ++i) product *= i;
        return product;
      })));
  // Lanes call different functions through a table of pointers.
  cases.push_back(Calling(Each(
      "",
      "mov.u64 X0, TABLE; and.b32 T0, A, 1; mul.wide.u32 X1, T0, 8;"
      " add.u64 X0, X0, X1; ld.global.u64 X2, [X0];"
      " { .param .b32 arg; .param .b32 res; st.param.b32 [arg], A;"
      " SHAPE: .callprototype (.param .b32 _) _ (.param .b32 _);"
      " call (res), X2, (arg), SHAPE; ld.param.b32 D, [res]; }",
      +[](U32 a) { return (a & 1) != 0 ? ~a + 1 : a * 3; })));
}

void AddEffectless(std::vector<PtxCase>& cases) {
  const auto same = +[](U32 a) { return a; };
  cases.push_back(Each("nanosleep", "nanosleep.u32 20; mov.u32 D, A;", same));
  cases.push_back(Each("griddepcontrol", "griddepcontrol.launch_dependents; mov.u32 D, A;", same));
  cases.push_back(Each("griddepcontrol", "griddepcontrol.wait; mov.u32 D, A;", same));
  // Clocks go on, each lane has its number.
  cases.push_back(Each(
      "mov(special)",
      "mov.u64 X0, %clock64; mov.u64 X1, %clock64; setp.ge.u64 P, X1, X0;"
      " mov.u64 X2, %globaltimer; setp.ne.and.u64 P, X2, 0, P; selp.u32 D, 1, 0, P;",
      +[]() { return U32{1}; }));
  cases.push_back(Together(
      "mov(special)", "mov.u32 T0, %lanemask_lt; mov.u32 T1, %lanemask_ge; sub.u32 D, T1, T0;",
      +[](int lane, const std::array<U32, kWarpLanes>&) {
        const U32 below = (U32{1} << lane) - 1;
        return ~below - below;
      }));
}

}  // namespace

std::vector<PtxCase> ControlCases() {
  std::vector<PtxCase> cases;
  AddBranches(cases);
  AddCalls(cases);
  AddEffectless(cases);
  return cases;
}

}  // namespace torpor::conformance
