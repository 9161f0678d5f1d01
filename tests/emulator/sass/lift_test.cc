#include "emulator/sass/lift.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace torpor::sass {
namespace {

using Words = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

constexpr std::pair<std::uint64_t, std::uint64_t> kExit = {0x000000000000794d, 0x000fea0003800000};
// S2R R0, SR_TID.X
constexpr std::pair<std::uint64_t, std::uint64_t> kTid = {0x0000000000007919, 0x000e220000002100};
// IMAD.WIDE R2, R0, 0x4, RZ
constexpr std::pair<std::uint64_t, std::uint64_t> kIndex = {0x0000000400027825, 0x001fd000078e02ff};
// IADD3 R12, P1, R2, c[0x0][0x160], RZ
constexpr std::pair<std::uint64_t, std::uint64_t> kLowSum = {0x00005800020c7a10,
                                                             0x000fc80007f3e0ff};
// IADD3.X R13, R3, c[0x0][0x164], RZ, P1, !PT
constexpr std::pair<std::uint64_t, std::uint64_t> kHighSum = {0x00005900030d7a10,
                                                              0x000fe20000ffe4ff};
// LDG.E.SYS R4, [R12]
constexpr std::pair<std::uint64_t, std::uint64_t> kLoad = {0x000000000c047381, 0x000ea800001ee900};
// STG.E.SYS [R12], R4
constexpr std::pair<std::uint64_t, std::uint64_t> kStore = {0x000000040c007386, 0x000fe2000010e900};

// The body of a kernel with 16 bytes of parameters, and of the functions in its text.
Result<std::string, LiftError> Lift(const Words& words, std::vector<CubinFunction> functions = {}) {
  std::vector<std::uint64_t> code;
  for (const auto& [low, high] : words) code.insert(code.end(), {low, high});
  Cubin cubin;
  cubin.texts.emplace_back();
  cubin.texts[0].code = std::as_bytes(std::span(code));
  cubin.texts[0].functions = std::move(functions);
  CubinKernel kernel;
  kernel.name = "k";
  kernel.parameter_bytes = 16;
  kernel.parameter_base = 0x160;
  return LiftKernel(cubin, kernel);
}

std::string MustLift(const Words& words) {
  const auto body = Lift(words);
  EXPECT_TRUE(body) << body.failure().message;
  return body ? *body : "";
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(LiftTest, APointerInTwoWordsIsOneSum) {
  const std::string body = MustLift({kTid, kIndex, kLowSum, kHighSum, kLoad, kStore, kExit});
  EXPECT_TRUE(Has(body, "mul.wide.s32 %q0, %r0, 4;")) << body;
  EXPECT_TRUE(Has(body, "add.s64 %q1, %q0, %tq")) << body;
  EXPECT_TRUE(Has(body, "ld.global.b32 %r1, [%q1];")) << body;
  EXPECT_FALSE(Has(body, "setp")) << body;
}

TEST(LiftTest, ACarryThatOthersReadStaysOne) {
  // IADD3.X R15, R3, c[0x0][0x164], RZ, P1, !PT
  const std::pair<std::uint64_t, std::uint64_t> other = {0x00005900030f7a10, 0x000fe20000ffe4ff};
  const std::string body = MustLift({kTid, kIndex, kLowSum, kHighSum, other, kLoad, kStore, kExit});
  EXPECT_TRUE(Has(body, "setp.ge.u64")) << body;
}

TEST(LiftTest, ARegisterThatIsUsedAgainIsAnother) {
  // MOV R4, 0x5 between two uses of R4 for something else.
  const std::pair<std::uint64_t, std::uint64_t> move = {0x0000000500047802, 0x000fca0000000f00};
  const std::string body =
      MustLift({kTid, kIndex, kLowSum, kHighSum, kLoad, kStore, move, kStore, kExit});
  EXPECT_TRUE(Has(body, "st.global.b32 [%q1], %r1;")) << body;
  EXPECT_TRUE(Has(body, "mov.b32 %r2, 5;")) << body;
  EXPECT_TRUE(Has(body, "st.global.b32 [%q1], %r2;")) << body;
}

TEST(LiftTest, AGuardedWriteKeepsTheValue) {
  // MOV R4, 0x5; @P0 MOV R4, 0x5
  const std::pair<std::uint64_t, std::uint64_t> move = {0x0000000500047802, 0x000fca0000000f00};
  const std::pair<std::uint64_t, std::uint64_t> guarded = {0x0000000600040802, 0x000fca0000000f00};
  const std::string body =
      MustLift({kTid, kIndex, kLowSum, kHighSum, move, guarded, kStore, kExit});
  EXPECT_TRUE(Has(body, "mov.b32 %r1, 5;")) << body;
  EXPECT_TRUE(Has(body, "@%p0 mov.b32 %r1, 6;")) << body;
  EXPECT_TRUE(Has(body, "[%q1], %r1;")) << body;
}

TEST(LiftTest, BranchesGoToLabels) {
  // @!P0 BRA behind the store
  const std::string body = MustLift(
      {kTid, kIndex, kLowSum, kHighSum, {0x0000001000008947, 0x000fea0003800000}, kStore, kExit});
  EXPECT_TRUE(Has(body, "@!%p0 bra $L2;")) << body;
  EXPECT_TRUE(Has(body, "$L2:\nexit;")) << body;
}

TEST(LiftTest, WhatIsNotKnownIsNamed) {
  const auto unknown = Lift({kTid, {0x00000000000071ff, 0}, kExit});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.failure().code, LiftError::kUnsupported);
  EXPECT_TRUE(Has(unknown.failure().message, "kernel 'k': machine instruction 0x1ff"))
      << unknown.failure().message;
  EXPECT_TRUE(Has(unknown.failure().message, "at 0x0010")) << unknown.failure().message;
}

TEST(LiftTest, ConstantsBehindTheParametersAreNone) {
  // MOV R4, c[0x0][0x170]
  const auto wild = Lift({{0x00005c0000047a02, 0x000fc40000000f00}, kExit});
  ASSERT_FALSE(wild);
  EXPECT_TRUE(Has(wild.failure().message, "MOV")) << wild.failure().message;
}

TEST(LiftTest, ACallByAddressIsOfAFunctionOfTheText) {
  // CALL.REL.NOINC R6; EXIT; RET.REL.NODEC R20
  const Words words = {
      {0xfffffff006007344, 0x003fea0003c3ffff}, kExit, {0xffffffd014007950, 0x000fee0003c3ffff}};
  const auto body = Lift(words, {{"k", 0, 0x20}, {"$k$f", 0x20, 0x10}});
  ASSERT_TRUE(body) << body.failure().message;
  EXPECT_TRUE(Has(*body, "setp.eq.u32 %tp0, %r0, 32;")) << *body;
  EXPECT_TRUE(Has(*body, "trap;")) << *body;
  EXPECT_FALSE(Has(*body, "%r0, 0;")) << "the kernel itself is not called: " << *body;
  const auto without = Lift(words, {{"k", 0, 0x20}});
  ASSERT_FALSE(without);
  EXPECT_TRUE(Has(without.failure().message, "CALL.REL of a function that a register names"))
      << without.failure().message;
}

TEST(LiftTest, CodeThatIsNoCodeIsAnErrorAtMost) {
  std::uint64_t state = 1;
  for (int round = 0; round < 20000; ++round) {
    Words words;
    for (int i = 0; i < 4; ++i) {
      const auto next = [&] { return state = state * 6364136223846793005 + 1442695040888963407; };
      const std::uint64_t low = next() ^ next() >> 32;
      words.emplace_back(low, next() ^ next() >> 32);
    }
    (void)Lift(words);
  }
}

}  // namespace
}  // namespace torpor::sass
