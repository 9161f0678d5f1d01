#include "server/repository/session_addresses.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using memory::Block;

TEST(SessionAddresses, BlocksAreWholeSegmentsAndComeBack) {
  SessionAddresses addresses(256 * kGiB + kMiB, kGiB);
  EXPECT_EQ(addresses.total_bytes(), 256 * kGiB);
  const auto first = addresses.Take(128 * kGiB);
  const auto second = addresses.Take(100 * kMiB);
  const auto third = addresses.Take(kGiB);
  ASSERT_TRUE(first && second && third);
  EXPECT_EQ(*first, (Block{0, 128 * kGiB}));
  EXPECT_EQ(*second, (Block{128 * kGiB, kGiB}));
  EXPECT_EQ(*third, (Block{129 * kGiB, kGiB}));
  EXPECT_EQ(addresses.free_bytes(), 126 * kGiB);
  addresses.Release(*first);
  EXPECT_EQ(addresses.Take(128 * kGiB), first);
}

TEST(SessionAddresses, GrowInPlaceWhileNothingIsInTheWay) {
  SessionAddresses addresses(8 * kGiB, kGiB);
  const Block first = *addresses.Take(1);
  EXPECT_EQ(addresses.TakeBehind(first.end(), kGiB + 1), (Block{kGiB, 2 * kGiB}));
  const Block other = *addresses.Take(1);
  EXPECT_EQ(other, (Block{3 * kGiB, kGiB}));
  EXPECT_FALSE(addresses.TakeBehind(3 * kGiB, kGiB));
  EXPECT_FALSE(addresses.TakeBehind(other.end(), 5 * kGiB)) << "the range ends";
  EXPECT_EQ(addresses.free_bytes(), 4 * kGiB);
}

TEST(SessionAddresses, RoomInPiecesIsNoRoom) {
  SessionAddresses addresses(3 * kGiB, kGiB);
  const Block first = *addresses.Take(1);
  const Block middle = *addresses.Take(1);
  const Block last = *addresses.Take(1);
  EXPECT_FALSE(addresses.Take(1));
  addresses.Release(first);
  addresses.Release(last);
  EXPECT_FALSE(addresses.Take(2 * kGiB));
  addresses.Release(middle);
  EXPECT_TRUE(addresses.Take(3 * kGiB));
}

TEST(SessionAddresses, MayBeEmpty) {
  SessionAddresses addresses(0, kGiB);
  EXPECT_FALSE(addresses.Take(1));
}

TEST(SessionAddresses, SegmentsOfAnEarlierTorpordAreTakenWhereTheyWere) {
  SessionAddresses addresses(4 * kGiB, kGiB);
  EXPECT_TRUE(addresses.TakeAt({kGiB, 2 * kGiB}));
  EXPECT_EQ(addresses.free_bytes(), 2 * kGiB);
  EXPECT_FALSE(addresses.TakeAt({2 * kGiB, kGiB})) << "it has an owner";
  EXPECT_FALSE(addresses.TakeAt({kMiB, kGiB})) << "no whole segment";
  EXPECT_FALSE(addresses.TakeAt({4 * kGiB, kGiB})) << "beyond the end";
  EXPECT_EQ(addresses.Take(1)->offset, 0u);
}

}  // namespace
}  // namespace torpor::server
