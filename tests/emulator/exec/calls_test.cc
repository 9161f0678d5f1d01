#include <cstdio>
#include <string>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class CallsTest : public KernelTest {
 protected:
  void SetUp() override { Load("calls"); }
};

int Factorial(int n) { return n <= 1 ? 1 : n * Factorial(n - 1); }

TEST_F(CallsTest, FunctionsRecurseAndReturnStructures) {
  DeviceArray<int> out(memory_, 96);
  MustRun("calls", {1, 1, 1}, {96, 1, 1}, out.data());
  for (int t = 0; t < 96; ++t) {
    int expected = Factorial(t % 9);
    if (t % 2 == 1) {
      for (int i = 0; i < (t & 7); ++i) expected += t + i;
    }
    expected += 2 * t + t + 3 * t + 1;
    ASSERT_EQ(out[t], expected) << t;
  }
}

TEST_F(CallsTest, LanesMayCallDifferentFunctions) {
  DeviceArray<int> out(memory_, 64);
  MustRun("indirect", {1, 1, 1}, {64, 1, 1}, out.data());
  for (int t = 0; t < 64; ++t) {
    const int expected = (t % 2 == 0 ? 2 * t : t * t) + (t % 5 == 0 ? t : t * 3 * t);
    ASSERT_EQ(out[t], expected) << t;
  }
}

TEST_F(CallsTest, PrintsLikeTheHost) {
  ::testing::internal::CaptureStdout();
  MustRun("prints", {1, 1, 1}, {32, 1, 1}, 42, 2.5, nullptr);
  std::fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "n=42 d=2.500 s=text    ff 1099511627776%\n");
}

TEST_F(CallsTest, AssertionsFailWithTheirText) {
  DeviceArray<int> out(memory_, 32);
  MustRun("asserts", {1, 1, 1}, {32, 1, 1}, out.data(), 32);
  LaunchConfig config;
  config.block = {32, 1, 1};
  const auto result = Launch("asserts", config, out.data(), 9);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().code, ExecError::kAssert);
  const std::string& message = result.failure().message;
  EXPECT_NE(message.find("static_cast<int>(threadIdx.x) < limit"), std::string::npos) << message;
  EXPECT_NE(message.find("thread (9,0,0)"), std::string::npos) << message;
}

TEST_F(CallsTest, EndlessRecursionIsAnError) {
  DeviceArray<int> out(memory_, 3);
  out[1] = 2;
  out[2] = 3;
  MustRun("endless", {1, 1, 1}, {32, 1, 1}, out.data());
  EXPECT_EQ(out[0], 9);
  out[1] = 4;
  LaunchConfig config;
  const auto result = Launch("endless", config, out.data());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().code, ExecError::kIllegalAddress) << result.failure().message;
}

}  // namespace
}  // namespace torpor::emulator
