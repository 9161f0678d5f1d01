#include "server/repository/session_addresses.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

TEST(SessionAddresses, RangesAreDisjointAndComeBack) {
  SessionAddresses space(0x2000'0000'0000);
  const auto first = space.Reserve(128 * kGiB);
  const auto second = space.Reserve(100 * kMiB);
  const auto third = space.Reserve(kGiB);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(*first, 0x2000'0000'0000u);
  EXPECT_EQ(*second, *first + 128 * kGiB);
  EXPECT_EQ(*third, *second + kGiB);
  space.Release(*first, 128 * kGiB);
  EXPECT_EQ(space.Reserve(128 * kGiB), first);
}

TEST(SessionAddresses, EndsWhereProgramsBegin) {
  SessionAddresses space(0x2000'0000'0000);
  int sessions = 0;
  while (const auto address = space.Reserve(128 * kGiB)) {
    ++sessions;
    ASSERT_LE(*address + 128 * kGiB, 0x5400'0000'0000u);
  }
  EXPECT_EQ(sessions, 416);
}

TEST(SessionAddresses, LeavesThreadSanitizerItsShadow) {
  SessionAddresses space(0x10'0000'0000);
  while (const auto address = space.Reserve(16 * kGiB)) {
    ASSERT_LE(*address + 16 * kGiB, 0x80'0000'0000u);
  }
}

TEST(SessionAddresses, NothingAboveTheEnd) {
  SessionAddresses space(0x7000'0000'0000);
  EXPECT_FALSE(space.Reserve(kGiB));
}

}  // namespace
}  // namespace torpor::server
