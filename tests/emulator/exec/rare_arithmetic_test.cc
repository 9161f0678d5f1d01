// Arithmetic that nvcc does not write.
#include <string>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

using RareArithmeticTest = KernelTest;

TEST_F(RareArithmeticTest, ProductsOf24BitsSaturate) {
  const auto one = [&](const char* a, const char* b, const char* c) {
    return RunWarp(std::string("mov.u32 %r3, ") + a + "; mov.u32 %r4, " + b + "; mov.u32 %r5, " +
                   c + "; mad24.hi.sat.s32 %r1, %r3, %r4, %r5;")[0];
  };
  EXPECT_EQ(one("0x7fffff", "0x7fffff", "0x7fffffff"), 0x7fffffffU);
  EXPECT_EQ(one("0x7fffff", "0x800000", "0x80000000"), 0x80000000U);
  EXPECT_EQ(one("0x010000", "0x010000", "5"), 0x10005U);
}

// Bit k of a lane's answer is the k-th property of its number.
TEST_F(RareArithmeticTest, PropertiesOfNumbersAreTested) {
  const std::uint32_t numbers[] = {0,          0x80000000, 1,          0x807fffff, 0x00800000,
                                   0xff7fffff, 0x3f800000, 0x7f800000, 0xff800000, 0x7fc00000};
  std::string before = ".const .align 4 .b32 numbers[32] = {";
  for (const std::uint32_t number : numbers) before += std::to_string(number) + ", ";
  before += "0};\n";
  std::string tests;
  unsigned bit = 1;
  for (const char* property :
       {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}) {
    tests += std::string("testp.") + property + ".f32 %p1, %f1; @%p1 or.b32 %r1, %r1, " +
             std::to_string(bit) + ";\n";
    bit *= 2;
  }
  const auto out = RunWarp(
      "mov.u32 %r1, 0; mov.u32 %r3, %laneid; mov.u64 %rd5, numbers; mul.wide.u32 %rd4, %r3, 4;\n"
      "add.u64 %rd4, %rd5, %rd4; ld.const.f32 %f1, [%rd4];\n" +
          tests,
      before);
  // Zeros count as normal.
  constexpr std::uint32_t kNormal = 1 + 4 + 16;
  constexpr std::uint32_t kSubnormal = 1 + 4 + 32;
  constexpr std::uint32_t kInfinite = 2 + 4;
  const std::uint32_t expected[] = {kNormal, kNormal, kSubnormal, kSubnormal, kNormal,
                                    kNormal, kNormal, kInfinite,  kInfinite,  8};
  for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

}  // namespace
}  // namespace torpor::emulator
