// Functions of a module: their parameters, their stack, threads that end in them, and calls that
// do not fit them.
#include <string>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class FunctionTest : public KernelTest {
 protected:
  void ExpectRefused(const std::string& body, const std::string& before, const std::string& word) {
    LoadBody(body, before);
    const auto result = program_->Preload("k", {32, 1, 1});
    ASSERT_FALSE(result) << body;
    EXPECT_EQ(result.failure().code, ExecError::kUnsupported);
    EXPECT_NE(result.failure().message.find(word), std::string::npos) << result.failure().message;
  }
};

TEST_F(FunctionTest, AParameterOfAFunctionHasAnAddress) {
  const auto out = RunWarp(
      ".param .b32 a; .param .align 8 .b8 b[6]; .param .b32 r;\n"
      "mov.u32 %r3, %laneid; add.u32 %r3, %r3, 77; st.param.b32 [a], %r3;\n"
      "mov.b32 %r4, 0x04030201; st.param.b32 [b], %r4; st.param.b16 [b+4], 0x0605;\n"
      "call (r), f, (a, b); ld.param.b32 %r1, [r];",
      ".func (.param .b32 r) f(.param .b32 a, .param .align 8 .b8 b[6])\n{\n"
      ".reg .b64 %rd<5>; .reg .b32 %r<9>;\n"
      "mov.b64 %rd1, a; ld.local.u32 %r1, [%rd1]; mov.b64 %rd2, b;\n"
      "mov.u32 %r2, %laneid; rem.u32 %r2, %r2, 6; cvt.u64.u32 %rd3, %r2;\n"
      "add.u64 %rd3, %rd2, %rd3; ld.u8 %r3, [%rd3]; mad.lo.u32 %r1, %r3, 1000, %r1;\n"
      "st.param.b32 [r], %r1; ret;\n}\n");
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], (lane % 6 + 1) * 1000 + lane + 77);
}

TEST_F(FunctionTest, TheStackGrowsAndShrinks) {
  // Each lane fills lane + 1 words, in a loop that gives them back; what it saw last is the sum.
  const auto out = RunWarp(
      ".reg .b64 %a<9>; mov.u32 %r3, %laneid; add.u32 %r4, %r3, 1; mul.wide.u32 %a1, %r4, 4;\n"
      "mov.u32 %r1, 0; mov.u32 %r5, 0;\n"
      "ROUND: stacksave.u64 %a2; alloca.u64 %a3, %a1, 8; mov.u32 %r6, 0; mov.u64 %a4, %a3;\n"
      "FILL: st.local.u32 [%a4], %r4; add.u64 %a4, %a4, 4; add.u32 %r6, %r6, 1;\n"
      "setp.lt.u32 %p1, %r6, %r4; @%p1 bra FILL; mov.u32 %r6, 0; mov.u64 %a4, %a3;\n"
      "READ: ld.local.u32 %r7, [%a4]; add.u32 %r1, %r1, %r7; add.u64 %a4, %a4, 4;\n"
      "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r4; @%p1 bra READ;\n"
      "stackrestore.u64 %a2; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 2000; @%p1 bra ROUND;");
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], 2000 * (lane + 1) * (lane + 1)) << lane;
  }
}

// f ends each third thread, all that call it if their number is large; g calls f.
constexpr char kEndingFunctions[] =
    ".func f(.param .b32 a)\n{\n.reg .b32 %r<3>; .reg .pred %p<3>;\n"
    "ld.param.b32 %r1, [a]; setp.gt.u32 %p2, %r1, 99; @%p2 bra ALL;\n"
    "rem.u32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0; @%p1 exit;\nret;\nALL: exit;\n}\n"
    ".func g(.param .b32 a)\n{\n.reg .b32 %r<3>; .param .b32 b;\n"
    "ld.param.b32 %r1, [a]; st.param.b32 [b], %r1; call f, (b);\nret;\n}\n";

TEST_F(FunctionTest, AnExitInAFunctionEndsTheThread) {
  const std::string call =
      ".param .b32 a; mov.u32 %r3, %laneid; st.param.b32 [a], %r3; call g, (a);\n";
  const std::string count = "activemask.b32 %r4; popc.b32 %r5, %r4; add.u32 %r1, %r5, %r3;";
  const auto direct = RunWarp(call + count, kEndingFunctions);
  const auto guarded = RunWarp(
      "mov.u32 %r3, %laneid; setp.lt.u32 %p1, %r3, 7;\n"
      ".param .b32 a; st.param.b32 [a], %r3; @%p1 call g, (a);\n" +
          count,
      kEndingFunctions);
  const auto pointer = RunWarp(
      ".param .b32 a; mov.u32 %r3, %laneid; st.param.b32 [a], %r3; mov.u64 %rd4, g;\n"
      "mov.u64 %rd5, f; setp.lt.u32 %p1, %r3, 16; selp.b64 %rd4, %rd4, %rd5, %p1;\n"
      "P: .callprototype _ (.param .b32 _); call %rd4, (a), P;\n" +
          count,
      kEndingFunctions);
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(direct[lane], lane % 3 == 0 ? 0 : 21 + lane) << lane;
    EXPECT_EQ(guarded[lane], lane % 3 == 0 && lane < 7 ? 0 : 29 + lane) << lane;
    EXPECT_EQ(pointer[lane], direct[lane]) << lane;
  }
}

TEST_F(FunctionTest, AWarpEndsWithItsLastThreadInAFunction) {
  const auto out = RunWarp(
      ".param .b32 a; mov.u32 %r3, %laneid; setp.lt.u32 %p1, %r3, 4; mov.u32 %r4, 100;\n"
      "st.param.b32 [a], %r4; @%p1 bra STAY; call g, (a); trap;\nSTAY: mov.u32 %r1, 5;",
      kEndingFunctions);
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane < 4 ? 5U : 0U) << lane;
}

TEST_F(FunctionTest, ACallMustBringAsManyBytesAsItsCalleeDeclares) {
  const std::string large =
      ".func (.param .align 16 .b8 r[16384]) f() { st.param.b32 [r+16380], 1; ret; }\n";
  ExpectRefused(".param .b32 r; call (r), f; ld.param.b32 %r1, [r];", large, "f");
  const std::string result = ".func (.param .b32 r) f() { st.param.b32 [r], 1; ret; }\n";
  ExpectRefused(".param .b32 a; call f, (a); mov.u32 %r1, 0;", result, "f");
  ExpectRefused(".shared .b32 a; call (a), f; mov.u32 %r1, 0;", result, "argument");
  const std::string print =
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n";
  ExpectRefused(".param .b32 r, f, a; call (r), vprintf, (f, a); mov.u32 %r1, 0;", print,
                "vprintf");
  const std::string heap =
      ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
      ".extern .func free(.param .b64 p);\n";
  ExpectRefused(".param .b32 r; .param .b64 n; call (r), malloc, (n); mov.u32 %r1, 0;", heap,
                "malloc");
  ExpectRefused(".param .b32 p; call free, (p); mov.u32 %r1, 0;", heap, "free");
}

TEST_F(FunctionTest, AFunctionOfOtherSizesIsNoTargetOfAnIndirectCall) {
  LoadBody(
      ".param .b32 r; mov.u64 %rd4, f; P: .callprototype (.param .b32 _) _ ();\n"
      "call (r), %rd4, (), P; ld.param.b32 %r1, [r];",
      ".func (.param .align 16 .b8 r[16384]) f() { st.param.b32 [r+16380], 1; ret; }\n");
  DeviceArray<std::uint32_t> out(memory_, 32);
  LaunchConfig config;
  config.block = {32, 1, 1};
  const auto result = Launch("k", config, out.data());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().code, ExecError::kTrap) << result.failure().message;
}

}  // namespace
}  // namespace torpor::emulator
