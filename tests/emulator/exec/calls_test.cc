#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class CallsTest : public KernelTest {
 protected:
  void SetUp() override { Load("calls"); }
};

// A string in device memory.
class DeviceText {
 public:
  DeviceText(FakeDeviceMemory& memory, const std::string& text) : bytes_(memory, text.size() + 1) {
    std::memcpy(bytes_.data(), text.c_str(), text.size() + 1);
  }
  const char* data() { return bytes_.data(); }

 private:
  DeviceArray<char> bytes_;
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

TEST_F(CallsTest, PrintsTextsOfAnyLength) {
  // Across the pieces in which texts are read, up to the last byte of a page.
  for (const std::size_t length : {0, 1, 63, 64, 65, 255, 256, 4095}) {
    DeviceText format(memory_, "<%s>");
    DeviceText text(memory_, std::string(length, 'x'));
    ::testing::internal::CaptureStdout();
    MustRun("prints_at", {1, 1, 1}, {1, 1, 1}, format.data(), text.data());
    std::fflush(stdout);
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "<" + std::string(length, 'x') + ">");
  }
}

TEST_F(CallsTest, PrintsWidthsAndPrecisions) {
  ::testing::internal::CaptureStdout();
  MustRun("prints_wide", {1, 1, 1}, {1, 1, 1}, 4);
  MustRun("prints_wide", {1, 1, 1}, {1, 1, 1}, -4);
  std::fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "[   7|8   |0.12|0.500000|%|  2.2]\n"
            "[7   |8   |0.12|0.500000|%|  2.2]\n");
}

TEST_F(CallsTest, WhatAPrintWritesIsBounded) {
  ::testing::internal::CaptureStdout();
  MustRun("prints_wide", {1, 1, 1}, {1, 1, 1}, 2'000'000'000);
  std::fflush(stdout);
  EXPECT_LT(::testing::internal::GetCapturedStdout().size(), 10'000U);
}

TEST_F(CallsTest, PrintsReadNoMemoryOfTheHost) {
  const std::string secret = "secret";
  DeviceText good(memory_, "%s");
  const char* const unbacked = reinterpret_cast<const char*>(memory_.window_end() - 4096);
  ::testing::internal::CaptureStdout();
  for (const char* bad : {secret.c_str(), unbacked, reinterpret_cast<const char*>(1)}) {
    MustFail(ExecError::kIllegalAddress, "prints_at", {1, 1, 1}, bad, good.data());
    MustFail(ExecError::kIllegalAddress, "prints_at", {1, 1, 1}, good.data(), bad);
  }
  std::fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  memory_.Register(secret.c_str(), secret.size() + 1);
  ::testing::internal::CaptureStdout();
  MustRun("prints_at", {1, 1, 1}, {1, 1, 1}, good.data(), secret.c_str());
  std::fflush(stdout);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "secret");
}

TEST_F(CallsTest, PrintArgumentsAreNoMemoryOfTheHost) {
  LoadText(
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);\n"
      ".visible .entry k(.param .u64 format, .param .u64 arguments)\n{\n"
      ".reg .b64 %rd<3>;\nld.param.u64 %rd1, [format];\nld.param.u64 %rd2, [arguments];\n"
      "{ .param .b64 p0; st.param.b64 [p0], %rd1; .param .b64 p1; st.param.b64 [p1], %rd2;\n"
      ".param .b32 r; call.uni (r), vprintf, (p0, p1); }\nret;\n}\n");
  DeviceText format(memory_, "%d\n");
  const int secret = 42;
  MustFail(ExecError::kIllegalAddress, "k", {1, 1, 1}, format.data(), &secret);
}

TEST_F(CallsTest, AssertionsReadNoMemoryOfTheHost) {
  const std::string secret = "secret";
  DeviceText good(memory_, "good");
  const char* const host = secret.c_str();
  const auto result = Launch("asserts_at", {}, good.data(), good.data(), good.data());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().code, ExecError::kAssert) << result.failure().message;
  MustFail(ExecError::kIllegalAddress, "asserts_at", {1, 1, 1}, host, good.data(), good.data());
  MustFail(ExecError::kIllegalAddress, "asserts_at", {1, 1, 1}, good.data(), host, good.data());
  MustFail(ExecError::kIllegalAddress, "asserts_at", {1, 1, 1}, good.data(), good.data(), host);
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
  // A line of each thread, as NVIDIA's driver prints it.
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 32 - 9 - 1) << message;
  EXPECT_NE(
      message.find(": block: [0,0,0], thread: [9,0,0] Assertion `static_cast<int>(threadIdx.x)"
                   " < limit` failed.\n"),
      std::string::npos)
      << message;
}

TEST_F(CallsTest, EndlessRecursionIsAnError) {
  if (KernelsAreMachineCode())
    GTEST_SKIP() << "such a recursion need not be noticed (docs/emulator.md)";
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
