#include "scheduler/gpu_images.h"

#include "tests/scheduler/parts_test.h"

namespace torpor::scheduler {
namespace {

using std::chrono::seconds;

class GpuImagesTest : public PartsTest {
 protected:
  GpuImagesTest() {
    AddGpu(kHere, 100);
    AddGpu(kThere, 100, {kHere});
    Add(1, 60);
  }
  Copy& CopyOf(std::uint64_t id, GpuIndex at) { return instance(id).image.copies.at(at); }
};

TEST_F(GpuImagesTest, AnImageComesFromTheHost) {
  EXPECT_TRUE(images_.Bring(instance(1), gpu(kHere)));
  const auto swap_in = Only<SwapIn>();
  ASSERT_TRUE(swap_in);
  EXPECT_FALSE(swap_in->source);
  EXPECT_EQ(gpu(kHere).used, 60u);
  EXPECT_EQ(gpu(kHere).swaps, 1);
  EXPECT_EQ(gpu(kHere).loading, InstanceId{1});
  images_.OnPresent(instance(1), kHere);
  EXPECT_EQ(gpu(kHere).swaps, 0);
  EXPECT_TRUE(instance(1).image.is_present_on(kHere));
  EXPECT_EQ(gpu(kHere).evictable.size(), 1u);
}

TEST_F(GpuImagesTest, AnImageMovesFromAnotherGpuAndLeavesIt) {
  Put(instance(1), kHere);
  EXPECT_TRUE(images_.Bring(instance(1), gpu(kThere)));
  EXPECT_EQ(Only<SwapIn>()->source, kHere);
  EXPECT_EQ(CopyOf(1, kHere).state, Copy::State::kLeaving);
  EXPECT_EQ(gpu(kHere).leaving, 60u);
  images_.Drop(instance(1), kHere);
  EXPECT_EQ(gpu(kHere).used, 0u);
  EXPECT_EQ(gpu(kHere).leaving, 0u);
}

TEST_F(GpuImagesTest, AReplicaIsReadAndStays) {
  instance(1).image.keeps_replicas = true;
  Put(instance(1), kHere);
  EXPECT_TRUE(images_.Bring(instance(1), gpu(kThere)));
  EXPECT_TRUE(Only<SwapIn>()->keeps_source);
  EXPECT_EQ(CopyOf(1, kHere).readers, 1);
  EXPECT_TRUE(gpu(kHere).evictable.empty());
  images_.OnPresent(instance(1), kThere);
  EXPECT_EQ(CopyOf(1, kHere).readers, 0);
  EXPECT_EQ(gpu(kHere).evictable.size(), 1u);
}

TEST_F(GpuImagesTest, ASwapInThatFailsEndsItsReading) {
  instance(1).image.keeps_replicas = true;
  Put(instance(1), kHere);
  images_.Bring(instance(1), gpu(kThere));
  images_.Drop(instance(1), kThere);
  EXPECT_EQ(CopyOf(1, kHere).readers, 0);
  EXPECT_EQ(gpu(kThere).used, 0u);
  EXPECT_EQ(gpu(kThere).swaps, 0);
}

TEST_F(GpuImagesTest, RoomIsMadeByTheLeastRecentlyUsed) {
  instance(1).image.bytes = 40;
  Add(2, 40).image.last_used = TimePoint(seconds(1));
  Put(instance(2), kHere);
  Put(instance(1), kHere);
  EXPECT_FALSE(images_.MakeRoom(gpu(kHere), 60));
  EXPECT_EQ(Only<SwapOut>()->instance, InstanceId{1});
  EXPECT_EQ(gpu(kHere).free_later(), 60u);
  // What leaves already is not evicted again.
  EXPECT_FALSE(images_.MakeRoom(gpu(kHere), 60));
  EXPECT_TRUE(outbox_.Take().empty());
  images_.Drop(instance(1), kHere);
  EXPECT_TRUE(images_.MakeRoom(gpu(kHere), 60));
}

TEST_F(GpuImagesTest, ATenantsImageIsNotEvictable) {
  Put(instance(1), kHere);
  instance(1).tenancy = {.phase = Phase::kLeased, .gpu = kHere, .run_since = {}, .requests = {}};
  images_.Rank(instance(1));
  EXPECT_TRUE(gpu(kHere).evictable.empty());
  EXPECT_FALSE(images_.MakeRoom(gpu(kHere), 60));
  EXPECT_TRUE(outbox_.Take().empty());
}

TEST_F(GpuImagesTest, APinnedImageIsTheLastToGo) {
  instance(1).image.bytes = 40;
  instance(1).image.is_pinned = true;
  Add(2, 40).image.last_used = TimePoint(seconds(1));
  Put(instance(1), kHere);
  Put(instance(2), kHere);
  images_.MakeRoom(gpu(kHere), 60);
  EXPECT_EQ(Only<SwapOut>()->instance, InstanceId{2});
}

TEST_F(GpuImagesTest, OfAPinnedImageOneCopyIsKept) {
  instance(1).image.bytes = 40;
  instance(1).image.is_pinned = true;
  instance(1).image.keeps_replicas = true;
  Put(instance(1), kHere);
  Put(instance(1), kThere);
  EXPECT_FALSE(CopyOf(1, kHere).evictable_rank->is_pinned);
  images_.SwapOut(instance(1), kThere, SwapOutReason::kMemoryFull);
  EXPECT_TRUE(CopyOf(1, kHere).evictable_rank->is_pinned);
}

TEST_F(GpuImagesTest, AnImageGrowsAndShrinksWhereItStays) {
  Put(instance(1), kHere);
  images_.Grow(instance(1), 10);
  EXPECT_EQ(gpu(kHere).used, 70u);
  images_.SwapOut(instance(1), kHere, SwapOutReason::kRequested);
  images_.Shrink(instance(1), 20);
  EXPECT_EQ(instance(1).image.bytes, 50u);
  EXPECT_EQ(gpu(kHere).used, 70u);  // what leaves may still be as large as it was
}

TEST_F(GpuImagesTest, AWriteBackIsOverWhenItsAnswerSaysClean) {
  Put(instance(1), kHere);
  instance(1).tenancy.gpu = kHere;
  images_.OnGranted(instance(1));
  images_.Rank(instance(1));
  images_.WriteBackFirst(gpu(kHere));
  EXPECT_EQ(Only<WriteBack>()->instance, InstanceId{1});
  EXPECT_EQ(gpu(kHere).saves, 1);
  images_.OnWrittenBack(instance(1), kHere, false);
  EXPECT_EQ(gpu(kHere).unsaved.size(), 1u);
  images_.WriteBackFirst(gpu(kHere));
  images_.OnWrittenBack(instance(1), kHere, true);
  EXPECT_TRUE(gpu(kHere).unsaved.empty());
  EXPECT_EQ(gpu(kHere).saves, 0);
}

TEST_F(GpuImagesTest, ALeaseLeavesOtherCopiesBehind) {
  instance(1).image.keeps_replicas = true;
  Put(instance(1), kHere);
  Put(instance(1), kThere);
  EXPECT_FALSE(instance(1).image.is_behind_on(kThere));
  instance(1).tenancy.gpu = kHere;
  images_.OnGranted(instance(1));
  EXPECT_TRUE(instance(1).image.is_behind_on(kThere));
  EXPECT_FALSE(instance(1).image.is_behind_on(kHere));
  instance(1).tenancy.gpu = kThere;
  images_.OnGranted(instance(1));
  EXPECT_TRUE(instance(1).image.is_behind_on(kHere)) << "written back for the lease";
  EXPECT_FALSE(CopyOf(1, kHere).is_unsaved);
}

TEST_F(GpuImagesTest, OfAConstantImageNoCopyFallsBehind) {
  instance(1).image.keeps_replicas = true;
  instance(1).image.is_constant = true;
  Put(instance(1), kHere);
  Put(instance(1), kThere);
  instance(1).tenancy.gpu = kHere;
  images_.OnGranted(instance(1));
  EXPECT_FALSE(instance(1).image.is_behind_on(kThere));
}

TEST_F(GpuImagesTest, AnImageComesFromACopyThatIsNotBehindIfThereIsOne) {
  constexpr GpuIndex kElsewhere{7};
  AddGpu(kElsewhere, 100, {kHere, kThere});
  instance(1).image.keeps_replicas = true;
  Put(instance(1), kHere);
  Put(instance(1), kThere);
  CopyOf(1, kThere).is_unsaved = true;
  EXPECT_TRUE(images_.Bring(instance(1), gpu(kElsewhere)));
  EXPECT_EQ(Only<SwapIn>()->source, kThere);
}

TEST_F(GpuImagesTest, AllCopiesThatMayGoLeave) {
  instance(1).image.keeps_replicas = true;
  Put(instance(1), kHere);
  Put(instance(1), kThere);
  images_.SwapOutAll(instance(1), SwapOutReason::kRequested);
  EXPECT_EQ(outbox_.Take().size(), 2u);
}

}  // namespace
}  // namespace torpor::scheduler
