#include "server/controller/model/shared_blocks.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using FreeTime = SharedBlocks::FreeTime;
using Closed = SharedBlocks::Closed;

constexpr Bytes kOffset = 2 * kMiB;
constexpr SessionId kOpener{5};

TEST(SharedBlocks, GivesOneTokenForABlockAndKnowsIt) {
  SharedBlocks blocks;
  const SessionKey token = blocks.Share(kOffset);
  EXPECT_EQ(blocks.Share(kOffset), token);
  EXPECT_TRUE(blocks.Matches(kOffset, token));
  EXPECT_FALSE(blocks.Matches(kOffset, SessionKey{}));
  EXPECT_FALSE(blocks.Matches(0, token));
}

TEST(SharedBlocks, FreesAtOnceWhatNobodyHasOpen) {
  SharedBlocks blocks;
  EXPECT_EQ(blocks.Free(kOffset), FreeTime::kNow) << "never shared";
  const SessionKey token = blocks.Share(kOffset);
  EXPECT_EQ(blocks.Free(kOffset), FreeTime::kNow);
  EXPECT_FALSE(blocks.Matches(kOffset, token));
}

TEST(SharedBlocks, KeepsAFreedBlockUntilItsLastOpenerClosesIt) {
  SharedBlocks blocks;
  const SessionKey token = blocks.Share(kOffset);
  blocks.Open(kOffset, kOpener);
  blocks.Open(kOffset, SessionId{6});
  EXPECT_EQ(blocks.Free(kOffset), FreeTime::kWhenClosed);
  EXPECT_EQ(blocks.Free(kOffset), FreeTime::kFreedAlready);
  EXPECT_FALSE(blocks.Matches(kOffset, token)) << "no one opens it any more";
  EXPECT_TRUE(blocks.IsFreed(kOffset));
  EXPECT_EQ(blocks.Close(kOffset, kOpener), Closed::kStillOpen);
  EXPECT_EQ(blocks.Close(kOffset, SessionId{6}), Closed::kFreed);
  EXPECT_FALSE(blocks.IsFreed(kOffset)) << "it is forgotten";
}

TEST(SharedBlocks, AClosedBlockStaysWithItsOwner) {
  SharedBlocks blocks;
  const SessionKey token = blocks.Share(kOffset);
  EXPECT_FALSE(blocks.was_opened());
  blocks.Open(kOffset, kOpener);
  EXPECT_TRUE(blocks.is_open());
  EXPECT_EQ(blocks.Close(kOffset, kOpener), Closed::kUnused);
  EXPECT_FALSE(blocks.is_open());
  EXPECT_TRUE(blocks.was_opened());
  EXPECT_TRUE(blocks.Matches(kOffset, token));
}

}  // namespace
}  // namespace torpor::server
