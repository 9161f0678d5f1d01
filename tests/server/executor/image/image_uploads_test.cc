#include "server/executor/image/image_uploads.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tests/server/executor/image/device_image_fixture.h"
#include "tests/server/executor/image/in_order.h"

namespace torpor::executor {
namespace {

class ImageUploadsTest : public DeviceImageTest {
 protected:
  static constexpr Bytes kBlock = wire::kImageBlockBytes;

  void SetUp() override {
    options_.keeps_checkpoints = true;
    DeviceImageTest::SetUp();
    ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4 * kBlock}})).ok());
    ASSERT_TRUE(image_->arrival().Wait().ok());
    Save(10);
  }
  void Save(std::uint64_t command) {
    image_->MarkDirty();
    ASSERT_TRUE(image_->WriteBack(stream_).ok());
    image_->CommitCheckpoint(command);
  }
  // Of a byte, by a command other than an upload.
  void Change(Bytes offset, std::uint8_t value) {
    image_->uploads().fresh().UseAll();
    gpu(offset)[0] = value;
    image_->MarkDirty();
  }
};

TEST_F(ImageUploadsTest, AreFinalInMemoryThatNoCommandHasUsedSinceTheCheckpoint) {
  EXPECT_TRUE(image_->uploads().IsFinal(kBase, 4 * kBlock));
  Change(0, 1);
  EXPECT_FALSE(image_->uploads().IsFinal(kBase + 2 * kBlock, 1));
  Save(11);
  EXPECT_TRUE(image_->uploads().IsFinal(kBase, 4 * kBlock));
}

TEST_F(ImageUploadsTest, AreNotFinalInABlockWrittenBackSinceTheCheckpoint) {
  Change(3 * kBlock, 1);
  ASSERT_TRUE(image_->WriteBack(stream_).ok());
  ASSERT_TRUE(image_->Grow({4 * kBlock, 6 * kBlock}, stream_).ok());
  EXPECT_TRUE(image_->uploads().IsFinal(kBase + 4 * kBlock, 2 * kBlock));
  gpu(4 * kBlock)[0] = 2;
  ASSERT_TRUE(image_->WriteBack(stream_).ok());
  EXPECT_FALSE(image_->uploads().IsFinal(kBase + 4 * kBlock, 2 * kBlock));
  image_->CommitCheckpoint(11);
  EXPECT_TRUE(image_->uploads().IsFinal(kBase + 4 * kBlock, 2 * kBlock));
}

TEST_F(ImageUploadsTest, TellWhichMemoryHoldsAddresses) {
  std::uint64_t word = kBase + 8;
  const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(&word),
                                            sizeof word);
  EXPECT_FALSE(image_->uploads().Note(kBase, bytes)) << "found when the image leaves the GPU";
  EXPECT_TRUE(image_->touches().has_uploaded());
  cuda_.HoldStreams();
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 5 * kBlock}})).ok());
  ASSERT_TRUE(image_->arrival().is_pending());
  EXPECT_TRUE(image_->uploads().Note(kBase, bytes));
  word = 8;
  EXPECT_FALSE(image_->uploads().Note(kBase, bytes));
  cuda_.Release();
}

TEST_F(ImageUploadsTest, SurviveWithoutWriteBack) {
  std::memset(gpu(128), 3, 64);
  ASSERT_TRUE(image_->uploads().SaveBehind(stream_, kBase + 128, 64).ok());
  EXPECT_EQ((*bytes_)[128], 3);
  EXPECT_FALSE(image_->dirty());
}

TEST_F(ImageUploadsTest, ReachABlockInTheAnnex) {
  Change(kBlock, 8);
  Save(11);
  const std::vector<std::uint8_t> bytes(2 * kBlock, 5);
  ASSERT_TRUE(image_->uploads().Save(kBase + kBlock / 2, bytes).ok());
  EXPECT_EQ((*bytes_)[kBlock - 1], 5);
  EXPECT_EQ((*bytes_)[kBlock], 5);
  EXPECT_EQ((*bytes_)[2 * kBlock + kBlock / 2], 0);
}

}  // namespace
}  // namespace torpor::executor
