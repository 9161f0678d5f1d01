// Checkpoints in the host image, by the write-backs of a DeviceImage.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "tests/server/executor/image/device_image_fixture.h"
#include "tests/server/executor/image/in_order.h"

namespace torpor::executor {
namespace {

class CheckpointTest : public DeviceImageTest {
 protected:
  static constexpr Bytes kBlock = wire::kImageBlockBytes;

  void SetUp() override {
    options_.keeps_checkpoints = true;
    DeviceImageTest::SetUp();
    std::memset(host_, 7, 4 * kBlock);
    ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4 * kBlock}})).ok());
    image_->MarkDirty();
    Save(10);
  }
  void Save(std::uint64_t command) {
    ASSERT_TRUE(image_->WriteBack(stream_).ok());
    image_->CommitCheckpoint(command);
  }
  void Change(Bytes block, std::uint8_t value) {
    gpu(block * kBlock)[0] = value;
    image_->MarkDirty();
  }
};

TEST_F(CheckpointTest, ContainsTheCommandsUpToTheWriteBacks) {
  EXPECT_EQ(image_->checkpoint().saved_command(), 10u);
  Change(1, 8);
  Save(25);
  EXPECT_EQ(image_->checkpoint().saved_command(), 25u);
  EXPECT_EQ((*bytes_)[kBlock], 8);
  EXPECT_EQ(host_[kBlock], 7) << "the last checkpoint's byte was left alone";
}

TEST_F(CheckpointTest, IsWholeWhereverTheWriterDies) {
  Change(0, 8);
  Change(3, 9);
  ASSERT_TRUE(image_->WriteBack(stream_, 2 * kBlock).ok());
  image_->CommitCheckpoint(25);
  ASSERT_TRUE(image_->is_partly_saved());
  EXPECT_EQ((*bytes_)[0], 8);
  // The successor knows nothing of this GPU's changes.
  image_->ForgetChanges();
  ASSERT_TRUE(image_->Drop().ok());
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4 * kBlock}})).ok());
  EXPECT_EQ(image_->checkpoint().saved_command(), 10u);
  EXPECT_EQ(gpu(0)[0], 7);
  EXPECT_EQ(gpu(3 * kBlock)[0], 7);
}

TEST_F(CheckpointTest, BlocksChangeBetweenTwoHomes) {
  for (std::uint8_t value = 1; value < 50; ++value) {
    Change(1, value);
    Change(2, value);
    EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), 2 * kBlock);
    image_->CommitCheckpoint(10 + value);
    ASSERT_TRUE(image_->Drop().ok());
    ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4 * kBlock}})).ok());
    EXPECT_EQ(gpu(kBlock)[0], value);
    EXPECT_EQ(gpu(2 * kBlock)[0], value);
    EXPECT_EQ(gpu(2 * kBlock)[1], 7);
    EXPECT_LE(states_->home(2), memory::AnnexHome(1)) << "the annex is no larger than needed";
  }
}

TEST_F(CheckpointTest, ABlocksNewHomeHoldsNothingOfItsFormerUsers) {
  const memory::SwapAllocation rest{{2 * kBlock, 2 * kBlock + 100}};
  const memory::SwapAllocation behind{{2 * kBlock + 512, 2 * kBlock + 1024}};
  ASSERT_TRUE(image_->Drop().ok());
  std::memset(host_ + 2 * kBlock, 0, kBlock);  // as torpord does with freed memory
  ASSERT_TRUE(image_->SwapIn({{{0, 2 * kBlock}}, rest}).ok());
  for (const std::uint8_t value : {std::uint8_t{3}, std::uint8_t{4}}) {  // to the annex, and back
    Change(0, value);
    Save(10 + value);
  }
  for (const std::uint8_t value : {std::uint8_t{5}, std::uint8_t{6}}) {
    Change(2, value);
    Save(10 + value);
  }
  ASSERT_EQ(states_->home(2), memory::AnnexHome(0)) << "where block 0 was";
  ASSERT_TRUE(image_->Drop().ok());
  ASSERT_TRUE(image_->SwapIn({{{0, 2 * kBlock}}, rest, behind}).ok());
  EXPECT_EQ(gpu(2 * kBlock)[0], 6);
  EXPECT_EQ(gpu(2 * kBlock)[512], 0);
}

// An executor that is new to the session has never had the block.
TEST_F(CheckpointTest, ABlockOutsideOfAllAllocationsKeepsItsHome) {
  states_->NoteChanged(5, memory::AnnexHome(0));
  states_->checkpoint().Commit(11);
  Change(0, 8);
  ASSERT_TRUE(image_->WriteBack(stream_).ok());
  EXPECT_EQ(states_->home(0), memory::AnnexHome(1));
  states_->NoteChanged(5, memory::kOwnPlace);
  ASSERT_TRUE(image_->Drop().ok());
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4 * kBlock}})).ok());
  EXPECT_EQ(states_->home(5), memory::AnnexHome(0)) << "the writer died before the checkpoint";
}

// Other GPUs may change exported memory at any time, so that the image is never known to be clean.
TEST_F(CheckpointTest, AnExportedImageHasCheckpointsToo) {
  ASSERT_TRUE(image_->ShareChunk(0).ok());
  Change(1, 8);
  Save(11);
  EXPECT_EQ(image_->checkpoint().saved_command(), 11u);
  EXPECT_FALSE(states_->IsPending(1)) << "the next GPU's executor would return to 10";
  gpu(2 * kBlock)[0] = 9;  // by a kernel of another GPU
  Save(12);
  EXPECT_EQ((*bytes_)[2 * kBlock], 9);
  EXPECT_FALSE(states_->IsPending(2));
}

}  // namespace
}  // namespace torpor::executor
