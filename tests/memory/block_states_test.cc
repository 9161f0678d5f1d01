#include "memory/block_states.h"

#include <gtest/gtest.h>

#include <vector>

namespace torpor::memory {
namespace {

constexpr Bytes kBlock = 1024;
constexpr std::uint64_t kHash = 0x1234'5678'9abc'def8;

class BlockStatesTest : public testing::Test {
 protected:
  std::vector<BlockRecord> records_ = std::vector<BlockRecord>(8);
  CheckpointRecord record_;
  Checkpoint checkpoint_{record_};
  BlockStates states_{records_, record_, kBlock};
};

TEST_F(BlockStatesTest, NothingIsKnownOfANewImage) {
  EXPECT_FALSE(states_.IsInStep(0, 0)) << "zeros are no hash";
  EXPECT_EQ(states_.origin(0), BlockOrigin::kUntouched);
}

TEST_F(BlockStatesTest, ABlockIsInStepWithItsHashOnly) {
  states_.SetInStep(3, kHash);
  EXPECT_TRUE(states_.IsInStep(3, kHash));
  EXPECT_FALSE(states_.IsInStep(3, kHash + 8));
  EXPECT_FALSE(states_.IsInStep(2, kHash));
}

TEST_F(BlockStatesTest, AnUploadIsForgottenAboutUntilItIsHashed) {
  states_.SetInStep(1, kHash);
  states_.NoteUpload({kBlock + 10, kBlock + 20});
  EXPECT_FALSE(states_.IsInStep(1, kHash));
  EXPECT_EQ(states_.origin(1), BlockOrigin::kUploaded);
  EXPECT_EQ(states_.origin(2), BlockOrigin::kUntouched);
}

TEST_F(BlockStatesTest, WhatTheGpuWroteIsScratchOrChanged) {
  states_.NoteUpload({0, kBlock});
  states_.SetInStep(0, kHash);
  states_.NoteOverwritten(0);
  states_.NoteOverwritten(1);
  EXPECT_FALSE(states_.IsInStep(0, kHash));
  EXPECT_EQ(states_.origin(0), BlockOrigin::kChanged);
  EXPECT_EQ(states_.origin(1), BlockOrigin::kScratch);
}

TEST_F(BlockStatesTest, AnUploadThatWasNotHashedYetIsNoChange) {
  states_.NoteUpload({0, kBlock});
  states_.NoteOverwritten(0);
  states_.SetInStep(0, kHash);
  EXPECT_EQ(states_.origin(0), BlockOrigin::kUploaded);
  EXPECT_TRUE(states_.IsInStep(0, kHash));
}

TEST_F(BlockStatesTest, ContentIsKnownOfZerosAndOfWhatWasHashed) {
  const auto zeros = states_.content(0);
  ASSERT_TRUE(zeros);
  states_.NoteUpload({0, kBlock});
  EXPECT_FALSE(states_.content(0));
  states_.SetInStep(0, kHash);
  const auto first = states_.content(0);
  ASSERT_TRUE(first);
  EXPECT_NE(first, zeros);
  states_.NoteOverwritten(0);
  EXPECT_FALSE(states_.content(0));
  states_.SetInStep(0, kHash + 8);
  EXPECT_NE(states_.content(0), first);
  states_.NoteOverwritten(0);
  states_.SetInStep(0, kHash);
  EXPECT_EQ(states_.content(0), first) << "wherever the bytes come from";
  EXPECT_NE(*first, BlockStates::kNoContent);
  EXPECT_NE(*zeros, BlockStates::kNoContent);
}

TEST_F(BlockStatesTest, BytesAreCountedByOrigin) {
  states_.NoteUpload({0, 2 * kBlock});
  states_.SetInStep(0, kHash);
  states_.NoteOverwritten(0);
  states_.NoteOverwritten(2);
  const MovedBytes bytes = states_.ByOrigin({kBlock - 100, 8 * kBlock});
  EXPECT_EQ(bytes.changed, 100u);
  EXPECT_EQ(bytes.uploaded, kBlock);
  EXPECT_EQ(bytes.scratch, kBlock);
  EXPECT_EQ(bytes.total(), 2 * kBlock + 100);
}

TEST_F(BlockStatesTest, OnlyAWholeUploadMakesAChangedBlockAnUploadedOne) {
  states_.NoteUpload({0, kBlock});
  states_.SetInStep(0, kHash);
  states_.NoteOverwritten(0);
  states_.NoteUpload({0, kBlock - 1});
  EXPECT_EQ(states_.origin(0), BlockOrigin::kChanged);
  states_.NoteUpload({0, kBlock + 1});
  EXPECT_EQ(states_.origin(0), BlockOrigin::kUploaded);
  EXPECT_EQ(states_.origin(1), BlockOrigin::kUploaded);
}

TEST_F(BlockStatesTest, MemoryThatIsFreedOrAllocatedIsUntouchedWhereItsBlocksAreItsOwn) {
  states_.NoteUpload({0, 4 * kBlock});
  for (std::size_t block = 0; block < 4; ++block) states_.SetInStep(block, kHash);
  ResetBlocks(records_, {kBlock / 2, 3 * kBlock + 1}, kBlock);
  EXPECT_EQ(states_.origin(0), BlockOrigin::kUploaded) << "others have bytes there";
  EXPECT_EQ(states_.origin(1), BlockOrigin::kUntouched);
  EXPECT_EQ(states_.origin(2), BlockOrigin::kUntouched);
  EXPECT_EQ(states_.origin(3), BlockOrigin::kUploaded);
  for (std::size_t block = 0; block < 4; ++block) EXPECT_FALSE(states_.IsInStep(block, kHash));
}

TEST_F(BlockStatesTest, ForgettingKeepsTheOrigin) {
  states_.NoteUpload({0, kBlock});
  states_.SetInStep(0, kHash);
  states_.Forget({kBlock - 1, kBlock});
  EXPECT_FALSE(states_.IsInStep(0, kHash));
  EXPECT_EQ(states_.origin(0), BlockOrigin::kUploaded);
}

TEST_F(BlockStatesTest, AChangedBlockHasItsNewHomeAtOnceAndItsOldBytesUntilTheCheckpoint) {
  states_.NoteUpload({0, 2 * kBlock});
  states_.SetInStep(0, kHash);
  EXPECT_TRUE(states_.NeedsAnnex(0));
  states_.NoteChanged(0, 7);
  EXPECT_EQ(states_.home(0), 7u);
  EXPECT_EQ(states_.origin(0), BlockOrigin::kChanged);
  EXPECT_TRUE(states_.IsPending(0));
  EXPECT_FALSE(states_.IsPending(1));
  states_.SetInStep(0, kHash + 8);
  EXPECT_TRUE(checkpoint_.is_exceeded());
  EXPECT_FALSE(states_.RollBack(0)) << "its own place has its bytes";
  checkpoint_.NoteUndone();
  EXPECT_FALSE(checkpoint_.is_exceeded());
  EXPECT_EQ(states_.home(0), kOwnPlace);
  EXPECT_EQ(states_.origin(0), BlockOrigin::kUploaded);
  EXPECT_TRUE(states_.IsInStep(0, kHash)) << "the last checkpoint's bytes";
  states_.RollBack(1);
  EXPECT_EQ(states_.origin(1), BlockOrigin::kUploaded) << "nothing was pending";
}

TEST_F(BlockStatesTest, AnUntouchedBlocksOwnPlaceIsFreeAndIsClearedIfTheWriterDies) {
  EXPECT_FALSE(states_.NeedsAnnex(0));
  states_.NoteChanged(0, kOwnPlace);
  EXPECT_EQ(states_.origin(0), BlockOrigin::kScratch);
  EXPECT_TRUE(states_.RollBack(0));
  EXPECT_EQ(states_.origin(0), BlockOrigin::kUntouched);
  EXPECT_FALSE(states_.RollBack(0));
}

TEST_F(BlockStatesTest, ACheckpointTakesAllNewVersionsAtOnce) {
  EXPECT_EQ(checkpoint_.saved_command(), 0u);
  states_.NoteChanged(2, 7);
  states_.NoteChanged(3, 8);
  checkpoint_.Commit(41);
  EXPECT_EQ(checkpoint_.saved_command(), 41u);
  EXPECT_FALSE(states_.IsPending(2));
  EXPECT_FALSE(checkpoint_.is_exceeded());
  states_.RollBack(2);
  EXPECT_EQ(states_.home(2), 7u) << "nothing is undone any more";
  EXPECT_EQ(states_.home(3), 8u);
  states_.Retire(2);
  EXPECT_EQ(states_.home(2), 7u);
}

TEST_F(BlockStatesTest, ABlockReturnsFromTheAnnexWithTheNextWriteBack) {
  states_.NoteChanged(2, 7);
  checkpoint_.Commit(1);
  states_.Retire(2);
  EXPECT_FALSE(states_.NeedsAnnex(2)) << "its own place holds nothing of the checkpoint";
  ExtentSet blocks;
  blocks.Add({5, 8});
  blocks.Add({2, 3});
  EXPECT_EQ(FreeAnnexHomes(states_, blocks, 2), (std::vector{AnnexHome(2), AnnexHome(5)}));
  EXPECT_EQ(FreeAnnexHomes(states_, blocks, 9),
            (std::vector{AnnexHome(2), AnnexHome(5), AnnexHome(7)}))
      << "home 7 is place 6";
  states_.NoteChanged(2, kOwnPlace);
  EXPECT_EQ(states_.home(2), kOwnPlace);
  checkpoint_.Commit(2);
  EXPECT_EQ(FreeAnnexHomes(states_, blocks, 9).size(), 3u) << "as long as it may be used";
  states_.Retire(2);
  EXPECT_EQ(FreeAnnexHomes(states_, blocks, 9).size(), 4u);
  EXPECT_EQ(checkpoint_.saved_command(), 2u);
}

TEST_F(BlockStatesTest, APendingBlockKeepsItsHome) {
  states_.NoteChanged(2, 7);
  states_.SetInStep(2, kHash);
  EXPECT_FALSE(states_.NeedsAnnex(2));
  states_.NoteChanged(2, 9);
  EXPECT_EQ(states_.home(2), 7u);
  EXPECT_FALSE(states_.IsInStep(2, kHash));
}

TEST_F(BlockStatesTest, EqualBlocksHaveOneHome) {
  states_.NoteUpload({0, 2 * kBlock});
  states_.SetInStep(0, kHash);
  for (const std::size_t block : {0, 1}) states_.Move(block, TenantHome(77));
  EXPECT_EQ(states_.home(0), states_.home(1));
  EXPECT_TRUE(IsTenantHome(states_.home(0)) && !IsAnnexHome(states_.home(0)));
  EXPECT_EQ(PlaceOfHome(0, states_.home(0)), 77u);
  EXPECT_TRUE(states_.IsInStep(0, kHash)) << "the bytes are the same";
  std::vector<std::size_t> places;
  states_.AppendAnnexPlaces(0, places);
  EXPECT_TRUE(places.empty());
  states_.AppendTenantPlaces(0, places);
  EXPECT_EQ(places, (std::vector<std::size_t>{77}));
}

TEST_F(BlockStatesTest, AChangedBlockLeavesItsEquals) {
  states_.NoteUpload({0, 2 * kBlock});
  checkpoint_.Commit(1);
  for (const std::size_t block : {0, 1}) states_.Move(block, TenantHome(block));
  EXPECT_FALSE(states_.NeedsAnnex(0)) << "the own place is free";
  states_.NoteChanged(0, kOwnPlace);
  EXPECT_EQ(states_.home(0), kOwnPlace);
  std::vector<std::size_t> places;
  states_.AppendTenantPlaces(0, places);
  EXPECT_EQ(places, (std::vector<std::size_t>{0})) << "the last checkpoint's bytes";
  EXPECT_FALSE(states_.RollBack(0));
  EXPECT_EQ(states_.home(0), TenantHome(0));
  states_.NoteOverwritten(1);
  EXPECT_EQ(states_.home(1), kOwnPlace) << "nobody writes to the tenant's file";
}

TEST_F(BlockStatesTest, FreedMemoryHasItsOwnPlaceAgain) {
  states_.NoteChanged(2, 7);
  checkpoint_.Commit(1);
  states_.NoteChanged(2, kOwnPlace);
  ResetBlocks(records_, {2 * kBlock, 3 * kBlock}, kBlock);
  EXPECT_EQ(states_.home(2), kOwnPlace);
  EXPECT_EQ(states_.origin(2), BlockOrigin::kUntouched);
  EXPECT_FALSE(states_.IsPending(2));
}

}  // namespace
}  // namespace torpor::memory
