#include "server/executor/gpu/kernel_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

// Gives the test's own standard output back at the end.
class KernelOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    std::fflush(stdout);
    saved_ = UniqueFd(dup(STDOUT_FILENO));
    ASSERT_TRUE(output_.TakeOver(cuda_.driver()).ok());
  }
  void TearDown() override {
    std::fflush(stdout);
    dup2(saved_.get(), STDOUT_FILENO);
  }

  std::string TakePrinted() {
    std::string all;
    while (output_.Take(printed_, said_)) all.append(printed_.begin(), printed_.end());
    return all;
  }

  FakeCuda cuda_;
  KernelOutput output_;
  UniqueFd saved_;
  std::vector<std::uint8_t> printed_;
  std::string said_;
};

TEST_F(KernelOutputTest, NothingIsTakenTwice) {
  EXPECT_FALSE(output_.Take(printed_, said_));
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

TEST_F(KernelOutputTest, TheDriversMessagesAreLines) {
  cuda_.Say("first");
  cuda_.Say("second");
  ASSERT_TRUE(output_.Take(printed_, said_));
  EXPECT_EQ(said_, "first\nsecond");
}

TEST_F(KernelOutputTest, TheDriversMessagesCanBeTakenAlone) {
  std::printf("printed\n");
  cuda_.Say("said");
  EXPECT_EQ(output_.TakeSaid(), "said");
  EXPECT_EQ(output_.TakeSaid(), "");
  EXPECT_EQ(TakePrinted().substr(0, 8), "printed\n");
}

TEST_F(KernelOutputTest, WhatIsDiscardedIsGone) {
  std::printf("for nobody");
  cuda_.Say("this too");
  output_.Discard();
  EXPECT_FALSE(output_.Take(printed_, said_));
}

}  // namespace
}  // namespace torpor::executor
