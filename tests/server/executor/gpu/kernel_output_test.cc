#include "server/executor/gpu/kernel_output.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "server/executor/gpu/expected_failures.h"
#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

// Gives the test's own standard streams back at the end.
class KernelOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);  // this process's log goes to the captured streams
    std::fflush(stdout);
    saved_output_ = UniqueFd(dup(STDOUT_FILENO));
    saved_error_ = UniqueFd(dup(STDERR_FILENO));
    ASSERT_TRUE(output_.TakeOver(cuda_.driver()).ok());
  }
  void TearDown() override {
    std::fflush(stdout);
    dup2(saved_output_.get(), STDOUT_FILENO);
    dup2(saved_error_.get(), STDERR_FILENO);
  }

  std::string TakePrinted() {
    std::string all;
    while (output_.TakePrinted(printed_)) all.append(printed_.begin(), printed_.end());
    return all;
  }

  FakeCuda cuda_;
  KernelOutput output_;
  UniqueFd saved_output_;
  UniqueFd saved_error_;
  std::vector<std::uint8_t> printed_;
};

TEST_F(KernelOutputTest, NothingIsTakenTwice) {
  EXPECT_FALSE(output_.TakePrinted(printed_));
  std::printf("one %d\n", 1);
  EXPECT_EQ(TakePrinted(), "one 1\n");
  std::printf("two");
  EXPECT_EQ(TakePrinted(), "two");
  EXPECT_EQ(TakePrinted(), "");
}

TEST_F(KernelOutputTest, MuchComesInParts) {
  const std::string line(1000, 'x');
  std::string all;
  for (int i = 0; i < 5000; ++i) {
    std::puts(line.c_str());
    all += line + "\n";
  }
  EXPECT_TRUE(TakePrinted() == all);
}

TEST_F(KernelOutputTest, AssertionsAreLinesOfTheProgram) {
  std::fputs("a.cu:1: failed\n", stderr);
  std::fputs("a.cu:2: failed\n", stderr);
  EXPECT_EQ(output_.TakeSaid(), "a.cu:1: failed\na.cu:2: failed");
  EXPECT_EQ(output_.TakeSaid(), "");
}

TEST_F(KernelOutputTest, TheDriversLogFollowsTheAssertions) {
  cuda_.Say("a call failed");
  cuda_.Say("a kernel failed");
  std::fputs("asserted\n", stderr);
  EXPECT_EQ(output_.TakeSaid(), "asserted\na call failed\na kernel failed");
}

TEST_F(KernelOutputTest, WhatAProbeMakesTheDriverLogIsDropped) {
  {
    const ExpectedFailures of_a_probe;
    cuda_.Say("a probe failed");
  }
  cuda_.Say("a kernel failed");
  EXPECT_EQ(output_.TakeSaid(), "a kernel failed");
}

TEST_F(KernelOutputTest, LinesCanBeTakenAlone) {
  std::printf("printed\n");
  std::fputs("asserted\n", stderr);
  cuda_.Say("logged");
  EXPECT_EQ(output_.TakeSaid(), "asserted\nlogged");
  EXPECT_EQ(output_.TakeSaid(), "");
  EXPECT_EQ(TakePrinted().substr(0, 8), "printed\n");
}

TEST_F(KernelOutputTest, WhatIsDiscardedIsGone) {
  std::printf("for nobody");
  cuda_.Say("this too");
  output_.Discard();
  EXPECT_FALSE(output_.TakePrinted(printed_));
  EXPECT_EQ(output_.TakeSaid(), "");
}

}  // namespace
}  // namespace torpor::executor
