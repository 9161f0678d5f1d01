#include "server/executor/image/device_image.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "tests/server/executor/image/device_image_fixture.h"
#include "tests/server/executor/image/in_order.h"

namespace torpor::executor {
namespace {

TEST_F(DeviceImageTest, SwapsInAndOutWhatTheGpuChanged) {
  std::memset(host_ + 100, 7, 1000);
  ASSERT_EQ(image_->SwapIn(InOrder({{0, 2000}}))->total(), 2000u);
  EXPECT_EQ(gpu(100)[0], 7);
  gpu(100)[0] = 9;
  image_->MarkDirty();
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), 2000u);
  EXPECT_EQ((*bytes_)[100], 9);
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), 0u) << "in step: nothing to copy";
  ASSERT_TRUE(image_->Drop().ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
  EXPECT_EQ(pool_->free_chunks(), 8u);
}

TEST_F(DeviceImageTest, OnlyBlocksThatTheGpuChangedAreWrittenBack) {
  constexpr Bytes kBlock = wire::kImageBlockBytes;
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4 * kBlock - 100}})).ok());
  image_->MarkDirty();
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), 4 * kBlock - 100) << "nothing is known yet";
  image_->MarkDirty();
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), 0u)
      << "launches that write nothing cost no copy";
  gpu(kBlock)[0] = 1;
  gpu(4 * kBlock - 101)[0] = 2;
  image_->MarkDirty();
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), 2 * kBlock - 100);
  EXPECT_EQ((*bytes_)[kBlock], 1);
  EXPECT_EQ((*bytes_)[4 * kBlock - 101], 2);
  EXPECT_EQ(states_->origin(0), memory::BlockOrigin::kUploaded);
  EXPECT_EQ(states_->origin(1), memory::BlockOrigin::kChanged);
}

// Another GPU has the image meanwhile; its executor changes the host image and the block states.
class OlderCopyTest : public DeviceImageTest {
 protected:
  static constexpr Bytes kBlock = wire::kImageBlockBytes;

  void SetUp() override {
    DeviceImageTest::SetUp();
    std::memset(host_, 7, 4 * kBlock);
    ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4 * kBlock}})).ok());
    image_->MarkDirty();
    ASSERT_TRUE(image_->WriteBack(stream_).ok());
  }
  // Of one byte in each half of the image's last but one block.
  void WriteBackElsewhere(std::uint8_t value) {
    states_->NoteOverwritten(2);
    (*bytes_)[2 * kBlock] = (*bytes_)[3 * kBlock - 1] = value;
    states_->SetInStep(2, std::uint64_t{0x1000} * value);
  }
};

TEST_F(OlderCopyTest, OnlyWhatHasChangedComesAnew) {
  ASSERT_TRUE(image_->ForgetStale().ok());
  EXPECT_EQ(image_->SwapIn(InOrder({{0, 4 * kBlock}}))->total(), 0u);
  WriteBackElsewhere(9);
  ASSERT_TRUE(image_->ForgetStale().ok());
  EXPECT_EQ(image_->SwapIn(InOrder({{0, 4 * kBlock}}))->total(), kBlock);
  EXPECT_EQ(gpu(2 * kBlock)[0], 9);
  EXPECT_EQ(gpu(3 * kBlock - 1)[0], 9);
  ASSERT_TRUE(image_->ForgetStale().ok());
  EXPECT_EQ(image_->SwapIn(InOrder({{0, 4 * kBlock}}))->total(), 0u) << "it has come";
}

TEST_F(OlderCopyTest, AnUploadElsewhereComesAnewWhileItsHashIsUnknown) {
  states_->NoteUpload({kBlock + 5, kBlock + 6});
  (*bytes_)[kBlock + 5] = 8;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(image_->ForgetStale().ok());
    EXPECT_EQ(image_->SwapIn(InOrder({{0, 4 * kBlock}}))->total(), kBlock);
    EXPECT_EQ(gpu(kBlock)[5], 8);
  }
}

TEST_F(OlderCopyTest, ChangesMadeHereAndWrittenBackAreNoneToCome) {
  gpu(0)[0] = 1;
  image_->MarkDirty();
  EXPECT_TRUE(absl::IsFailedPrecondition(image_->ForgetStale())) << "they would be lost";
  ASSERT_TRUE(image_->WriteBack(stream_).ok());
  ASSERT_TRUE(image_->ForgetStale().ok());
  EXPECT_EQ(image_->SwapIn(InOrder({{0, 4 * kBlock}}))->total(), 0u);
  EXPECT_EQ(gpu(0)[0], 1);
}

TEST_F(OlderCopyTest, WhatWasAllocatedElsewhereComesToo) {
  states_->NoteUpload({4 * kBlock, 5 * kBlock});
  (*bytes_)[4 * kBlock] = 6;
  ASSERT_TRUE(image_->ForgetStale().ok());
  EXPECT_EQ(image_->SwapIn(InOrder({{0, 4 * kBlock}, {4 * kBlock, 5 * kBlock}}))->total(), kBlock);
  EXPECT_EQ(gpu(4 * kBlock)[0], 6);
}

TEST_F(OlderCopyTest, BlocksThatAreZerosAgainAreCleared) {
  Untouch({2 * kBlock, 3 * kBlock});
  ASSERT_TRUE(image_->ForgetStale().ok());
  EXPECT_EQ(image_->SwapIn(InOrder({{0, 4 * kBlock}}))->total(), 0u);
  EXPECT_EQ(gpu(2 * kBlock)[0], 0);
  EXPECT_EQ(gpu(3 * kBlock)[0], 7);
}

TEST_F(DeviceImageTest, PartsAreWrittenBackOneAfterAnother) {
  constexpr Bytes kBlock = wire::kImageBlockBytes;
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 5 * kBlock}})).ok());
  image_->MarkDirty();
  EXPECT_EQ(image_->WriteBack(stream_, 2 * kBlock)->bytes.total(), 2 * kBlock);
  EXPECT_TRUE(image_->is_partly_saved());
  EXPECT_EQ(image_->WriteBack(stream_, 2 * kBlock)->bytes.total(), 2 * kBlock);
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), kBlock) << "only the rest is left";
  EXPECT_FALSE(image_->dirty());
}

TEST_F(DeviceImageTest, WhatChangesAfterAPartIsFoundByTheNext) {
  constexpr Bytes kBlock = wire::kImageBlockBytes;
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4 * kBlock}})).ok());
  image_->MarkDirty();
  ASSERT_TRUE(image_->WriteBack(stream_, 2 * kBlock).ok());
  gpu(kBlock)[0] = 9;
  image_->MarkDirty();
  EXPECT_FALSE(image_->is_partly_saved());
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), 3 * kBlock);
  EXPECT_EQ((*bytes_)[kBlock], 9);
  EXPECT_FALSE(image_->dirty());
}

TEST_F(DeviceImageTest, WhatIsKnownOfTheImageIsKnownOnTheNextGpuToo) {
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4096}})).ok());
  image_->MarkDirty();
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), 4096u);
  ASSERT_TRUE(image_->Drop().ok());
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4096}})).ok());
  image_->MarkDirty();
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), 0u);
}

TEST_F(DeviceImageTest, MemoryThatNobodyWroteIsNeitherCopiedInNorOut) {
  Untouch({0, kRange});
  ASSERT_TRUE(image_->Grow({0, FakeCuda::kChunk}, stream_).ok());
  gpu(0)[5] = 1;
  EXPECT_EQ(image_->WriteBack(stream_)->bytes.total(), wire::kImageBlockBytes);
  ASSERT_TRUE(image_->Drop().ok());
  std::memset(host_ + wire::kImageBlockBytes, 0xEE, 1);  // would show if it were read
  EXPECT_EQ(image_->SwapIn(InOrder({{0, FakeCuda::kChunk}}))->total(), wire::kImageBlockBytes);
  EXPECT_EQ(gpu(0)[5], 1);
  EXPECT_EQ(gpu(wire::kImageBlockBytes)[0], 0);
}

TEST_F(DeviceImageTest, WhatAnAllocationFindsInAChunkIsNoHashsBusiness) {
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 512}})).ok());
  gpu(1000)[0] = 9;  // of an allocation that has gone
  image_->MarkDirty();
  ASSERT_TRUE(image_->WriteBack(stream_).ok());
  ASSERT_TRUE(image_->Grow({512, 2048}, stream_).ok());
  gpu(1000)[0] = 9;
  ASSERT_EQ(image_->WriteBack(stream_)->bytes.total(), 2048u);
  EXPECT_EQ((*bytes_)[1000], 9);
}

TEST_F(DeviceImageTest, ASecondSwapInCopiesNothing) {
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4096}})).ok());
  gpu(0)[0] = 5;
  EXPECT_EQ(image_->SwapIn(InOrder({{0, 4096}}))->total(), 0u);
  EXPECT_EQ(gpu(0)[0], 5);
}

TEST_F(DeviceImageTest, AnotherFunctionsBytesAreGone) {
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, FakeCuda::kChunk}})).ok());
  std::memset(gpu(0), 0xAA, FakeCuda::kChunk);
  ASSERT_TRUE(image_->Drop().ok());
  // The pool gives the same chunk again.
  ASSERT_TRUE(image_->SwapIn(InOrder({{512, 1024}})).ok());
  EXPECT_EQ(gpu(0)[0], 0);
  EXPECT_EQ(gpu(1024)[0], 0);
  EXPECT_EQ(gpu(FakeCuda::kChunk - 1)[0], 0);
}

TEST_F(DeviceImageTest, GrowingZeroesAndShrinkingGivesChunksBack) {
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4096}})).ok());
  std::memset(gpu(4096), 0xAA, 4096);
  ASSERT_TRUE(image_->Grow({4096, FakeCuda::kChunk + 512}, stream_).ok());
  EXPECT_EQ(gpu(4096)[0], 0);
  EXPECT_EQ(cuda_.mapped_chunks(), 2u);
  EXPECT_TRUE(image_->Contains(kBase, FakeCuda::kChunk + 512));
  ASSERT_TRUE(image_->Shrink({4096, FakeCuda::kChunk + 512}, Live({{0, 4096}})).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 1u);
  EXPECT_FALSE(image_->Contains(kBase, 4097));
}

TEST_F(DeviceImageTest, AFullPoolLeavesEverythingAsItWas) {
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4096}})).ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(image_->SwapIn(InOrder({{0, 9 * FakeCuda::kChunk}})).status()));
  EXPECT_EQ(cuda_.mapped_chunks(), 1u);
  EXPECT_TRUE(image_->Contains(kBase, 4096));
  EXPECT_EQ(pool_->free_chunks(), 7u);
}

TEST_F(DeviceImageTest, RefusesExtentsOutsideItsRange) {
  EXPECT_FALSE(image_->SwapIn(InOrder({{0, kRange + 1}})).ok());
  EXPECT_FALSE(image_->Grow({kRange, kRange + 512}, stream_).ok());
  EXPECT_FALSE(image_->Grow({512, 512}, stream_).ok());
  EXPECT_FALSE(image_->Contains(kBase - 1, 1));
  EXPECT_FALSE(image_->Contains(kBase, ~Bytes{0}));
}

}  // namespace
}  // namespace torpor::executor
