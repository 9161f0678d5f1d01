// Which pages of an image's files a DeviceImage pins, and when.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/server/executor/image/device_image_fixture.h"
#include "tests/server/executor/image/in_order.h"

namespace torpor::executor {
namespace {

TEST_F(DeviceImageTest, CopiesNeverSpanTwoRegistrations) {
  // Pinned in two pieces, then copied as one extent; the fake refuses a copy across.
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4096}})).ok());
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 3 * FakeCuda::kChunk}})).ok());
  EXPECT_GT(cuda_.registered_pieces(), 1u);
  image_->MarkDirty();
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), 3 * FakeCuda::kChunk);
}

TEST_F(DeviceImageTest, PagesThatLeaveTheFileAreNotKept) {
  constexpr Bytes kChunk = FakeCuda::kChunk;
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, kChunk}})).ok());
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4 * kChunk}})).ok());
  ASSERT_TRUE(image_->Shrink({kChunk, 3 * kChunk}, Live({{0, kChunk}})).ok());
  ASSERT_TRUE(image_->ReleaseHost({kChunk, 3 * kChunk}).ok());
  EXPECT_TRUE(cuda_.IsRegistered(host_)) << "not its piece";
  EXPECT_FALSE(cuda_.IsRegistered(host_ + kChunk));
  EXPECT_FALSE(cuda_.IsRegistered(host_ + 3 * kChunk - 1));
  // What is allocated there next is pinned anew.
  ASSERT_TRUE(image_->Grow({2 * kChunk, 3 * kChunk}, stream_).ok());
  gpu(2 * kChunk)[5] = 5;
  ASSERT_TRUE(image_->uploads().SaveBehind(stream_, kBase + 2 * kChunk, 64).ok());
  EXPECT_TRUE(cuda_.IsRegistered(host_ + 2 * kChunk));
  EXPECT_FALSE(cuda_.IsRegistered(host_ + kChunk)) << "nothing there is live";
  EXPECT_EQ((*bytes_)[2 * kChunk + 5], 5);
  EXPECT_FALSE(image_->ReleaseHost({0, kRange + 1}).ok());
}

// Of an image of 80 MiB, of which nothing is written yet.
class PinnedAheadTest : public DeviceImageTest {
 protected:
  static constexpr Bytes kUnit = 2 * kMiB;
  static constexpr Bytes kSlot = PinnedMemory::kSlotBytes;
  static constexpr Bytes kImage = 80 * kMiB;

  void SetUp() override {
    DeviceImageTest::SetUp();
    OpenImage({});
  }
  void OpenImage(const SwapOptions& options) {
    image_.reset();
    ImageFiles files = NewUnwrittenFiles(kImage);
    host_ = files.image.data();
    states_.emplace(StatesOf(files));
    bytes_.emplace(files);
    records_ = RecordsOf(files);
    image_ = std::make_unique<DeviceImage>(*device_,
                                           *MappedBacking::Open(*device_, *pool_, kBase, kImage),
                                           hasher_, kBase, kImage, std::move(files), options);
  }
  int PinAll() {
    int pieces = 0;
    while (*image_->PinNext()) ++pieces;
    return pieces;
  }
};

TEST_F(PinnedAheadTest, OnlyWhatIsWrittenIsPinned) {
  EXPECT_EQ(PinAll(), 0);
  // The states tell of uploads by every executor.
  states_->NoteUpload({10 * kMiB + 5, 12 * kMiB});
  states_->NoteUpload({70 * kMiB, 70 * kMiB + 1});
  EXPECT_EQ(PinAll(), 2);
  EXPECT_EQ(cuda_.registered_pieces(), 2u);
  EXPECT_TRUE(cuda_.IsRegistered(host_ + 10 * kMiB));
  EXPECT_TRUE(cuda_.IsRegistered(host_ + 12 * kMiB - 1));
  EXPECT_FALSE(cuda_.IsRegistered(host_ + 12 * kMiB));
  EXPECT_FALSE(cuda_.IsRegistered(host_ + 10 * kMiB - 1));
  EXPECT_TRUE(cuda_.IsRegistered(host_ + 70 * kMiB));
  EXPECT_FALSE(cuda_.IsRegistered(host_ + 72 * kMiB));
  states_->NoteUpload({20 * kMiB, 21 * kMiB});
  EXPECT_EQ(PinAll(), 1);
}

TEST_F(PinnedAheadTest, AStepPinsAPieceOfASlot) {
  states_->NoteUpload({0, kImage});
  EXPECT_TRUE(*image_->PinNext());
  EXPECT_TRUE(cuda_.IsRegistered(host_ + kSlot - 1));
  EXPECT_FALSE(cuda_.IsRegistered(host_ + kSlot));
  EXPECT_EQ(PinAll(), 1);
  EXPECT_TRUE(cuda_.IsRegistered(host_ + kImage - 1));
}

TEST_F(PinnedAheadTest, ASwapInFindsItsPagesPinned) {
  states_->NoteUpload({0, 3 * kUnit});
  EXPECT_EQ(PinAll(), 1);
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 3 * kUnit}})).ok());
  EXPECT_EQ(cuda_.registered_pieces(), 1u);
  image_->MarkDirty();
  gpu(kUnit)[5] = 5;
  ASSERT_TRUE(image_->WriteBack(stream_).ok());
  EXPECT_EQ((*bytes_)[kUnit + 5], 5);
}

TEST_F(PinnedAheadTest, FreeingAffectsThePieceConcernedWhichIsPinnedAgain) {
  states_->NoteUpload({0, kImage});
  PinAll();
  Untouch({kUnit, 2 * kUnit});
  ASSERT_TRUE(image_->ReleaseHost({kUnit, 2 * kUnit}).ok());
  EXPECT_FALSE(cuda_.IsRegistered(host_));
  EXPECT_TRUE(cuda_.IsRegistered(host_ + kSlot)) << "another piece";
  EXPECT_EQ(PinAll(), 2);
  EXPECT_TRUE(cuda_.IsRegistered(host_));
  EXPECT_FALSE(cuda_.IsRegistered(host_ + kUnit)) << "it is free";
  EXPECT_TRUE(cuda_.IsRegistered(host_ + 2 * kUnit));
}

TEST_F(PinnedAheadTest, UploadsPinNothingOnTheirWay) {
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, kUnit}})).ok());
  const std::vector<std::uint8_t> bytes(100, 7);
  ASSERT_TRUE(image_->uploads().Save(kBase, bytes).ok());
  EXPECT_EQ(cuda_.registered_pieces(), 0u);
  EXPECT_EQ(PinAll(), 1);
}

TEST_F(PinnedAheadTest, NothingIsPinnedIfImagesAreNot) {
  OpenImage({.pinned = false});
  states_->NoteUpload({0, kImage});
  EXPECT_EQ(PinAll(), 0);
}

}  // namespace
}  // namespace torpor::executor
