#include "server/executor/image/device_image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "server/executor/image/mapped_backing.h"
#include "tests/server/executor/gpu/fake_cuda.h"
#include "tests/server/executor/image/fake_image.h"
#include "tests/server/executor/image/in_order.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kBase = 0x5500'0000'0000;  // where the sanitizers allow mappings
constexpr Bytes kRange = 64 * kMiB;

class DeviceImageTest : public testing::Test {
 protected:
  void SetUp() override {
    device_ = *Device::Open(cuda_.driver(), 0);
    pool_ = *PhysicalPool::Create(*device_, 8 * FakeCuda::kChunk, FakeCuda::kChunk);
    pool_->Return(*pool_->Take(8));  // waits until the pool is full
    ImageFiles files = NewImageFiles(kRange);
    host_ = files.image.data();
    states_.emplace(StatesOf(files));
    bytes_.emplace(files);
    records_ = RecordsOf(files);
    image_ = std::make_unique<DeviceImage>(*device_,
                                           *MappedBacking::Open(*device_, *pool_, kBase, kRange),
                                           hasher_, kBase, kRange, std::move(files), options_);
    stream_ = *device_->CreateStream();
  }

  std::uint8_t* gpu(Bytes offset) { return reinterpret_cast<std::uint8_t*>(kBase + offset); }
  static memory::ExtentSet Live(std::initializer_list<memory::Extent> extents) {
    memory::ExtentSet set;
    for (const memory::Extent& extent : extents) set.Add(extent);
    return set;
  }

  // As torpord does with memory that is freed.
  void Untouch(memory::Extent extent) {
    memory::ResetBlocks(records_, extent, wire::kImageBlockBytes);
  }

  SwapOptions options_;
  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PhysicalPool> pool_;
  HostBlockHasher hasher_;
  std::unique_ptr<DeviceImage> image_;
  std::uint8_t* host_ = nullptr;    // own places of the blocks
  std::optional<HostBytes> bytes_;  // of the blocks, wherever they are
  std::span<memory::BlockRecord> records_;
  std::optional<memory::BlockStates> states_;
  CUstream stream_ = nullptr;
};

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
  ASSERT_TRUE(image_->SaveRange(kBase + 2 * kChunk, 64, stream_).ok());
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
  ASSERT_TRUE(image_->SaveBytes(kBase, bytes).ok());
  EXPECT_EQ(cuda_.registered_pieces(), 0u);
  EXPECT_EQ(PinAll(), 1);
}

TEST_F(PinnedAheadTest, NothingIsPinnedIfImagesAreNot) {
  OpenImage({.pinned = false});
  states_->NoteUpload({0, kImage});
  EXPECT_EQ(PinAll(), 0);
}

TEST_F(DeviceImageTest, RefusesExtentsOutsideItsRange) {
  EXPECT_FALSE(image_->SwapIn(InOrder({{0, kRange + 1}})).ok());
  EXPECT_FALSE(image_->Grow({kRange, kRange + 512}, stream_).ok());
  EXPECT_FALSE(image_->Grow({512, 512}, stream_).ok());
  EXPECT_FALSE(image_->Contains(kBase - 1, 1));
  EXPECT_FALSE(image_->Contains(kBase, ~Bytes{0}));
}

TEST_F(DeviceImageTest, UploadsSurviveWithoutWriteBack) {
  ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4096}})).ok());
  std::memset(gpu(128), 3, 64);
  ASSERT_TRUE(image_->SaveRange(kBase + 128, 64, stream_).ok());
  EXPECT_EQ((*bytes_)[128], 3);
  EXPECT_FALSE(image_->dirty());
}

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

TEST_F(CheckpointTest, UploadsReachABlockInTheAnnex) {
  Change(1, 8);
  Save(11);
  const std::vector<std::uint8_t> bytes(2 * kBlock, 5);
  ASSERT_TRUE(image_->SaveBytes(kBase + kBlock / 2, bytes).ok());
  EXPECT_EQ((*bytes_)[kBlock - 1], 5);
  EXPECT_EQ((*bytes_)[kBlock], 5);
  EXPECT_EQ((*bytes_)[2 * kBlock + kBlock / 2], 7);
}

}  // namespace
}  // namespace torpor::executor
