#include "server/router/sender_patience.h"

#include <gtest/gtest.h>

#include <limits>

namespace torpor::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SenderPatienceTest, AStallIsAsLongAsItSays) {
  SenderPatience patience(seconds(30), kKiB);
  EXPECT_EQ(patience.Left(0), seconds(30));
  EXPECT_EQ(patience.Left(kMiB), seconds(30));
}

TEST(SenderPatienceTest, WhatHasComeEarnsTime) {
  SenderPatience patience(seconds(30), kKiB);
  patience.Spend(seconds(29));
  EXPECT_EQ(patience.Left(0), seconds(1));
  EXPECT_EQ(patience.Left(2 * kKiB), seconds(3));
  EXPECT_EQ(patience.Left(512), milliseconds(1500));
}

TEST(SenderPatienceTest, OneByteASecondIsNotEnough) {
  SenderPatience patience(seconds(30), kKiB);
  Bytes received = 0;
  while (patience.Left(received) > Duration::zero()) {
    patience.Spend(seconds(1));
    ++received;
  }
  EXPECT_EQ(received, 31u);
}

TEST(SenderPatienceTest, OneKibibyteASecondIs) {
  SenderPatience patience(seconds(30), kKiB);
  for (Bytes received = 0; received < kMiB; received += kKiB) {
    ASSERT_EQ(patience.Left(received), seconds(30));
    patience.Spend(seconds(1));
  }
}

TEST(SenderPatienceTest, TheLargestBodyCountsRight) {
  SenderPatience patience(seconds(30), kKiB);
  EXPECT_EQ(patience.Left(std::numeric_limits<Bytes>::max()), seconds(30));
}

}  // namespace
}  // namespace torpor::server
