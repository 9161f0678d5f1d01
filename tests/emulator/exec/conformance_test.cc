// Hand-written PTX: what nvcc does not write, or only in circumstances that are hard to provoke.
#include <string>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class ConformanceTest : public KernelTest {
 protected:
  // out[tid] of one warp.
  std::vector<std::uint32_t> RunWarp(const std::string& body, const std::string& before = "") {
    LoadBody(body, before);
    DeviceArray<std::uint32_t> out(memory_, 32);
    MustRun("k", {1, 1, 1}, {32, 1, 1}, out.data());
    return {out.data(), out.data() + 32};
  }

  void ExpectRefused(const std::string& body, const std::string& before, const std::string& word) {
    LoadBody(body, before);
    const auto result = program_->Preload("k");
    ASSERT_FALSE(result) << body;
    EXPECT_EQ(result.failure().code, ExecError::kUnsupported);
    EXPECT_NE(result.failure().message.find(word), std::string::npos) << result.failure().message;
  }
};

TEST_F(ConformanceTest, ProductsOf24BitsSaturate) {
  const auto one = [&](const char* a, const char* b, const char* c) {
    return RunWarp(std::string("mov.u32 %r3, ") + a + "; mov.u32 %r4, " + b + "; mov.u32 %r5, " +
                   c + "; mad24.hi.sat.s32 %r1, %r3, %r4, %r5;")[0];
  };
  EXPECT_EQ(one("0x7fffff", "0x7fffff", "0x7fffffff"), 0x7fffffffU);
  EXPECT_EQ(one("0x7fffff", "0x800000", "0x80000000"), 0x80000000U);
  EXPECT_EQ(one("0x010000", "0x010000", "5"), 0x10005U);
}

}  // namespace
}  // namespace torpor::emulator
