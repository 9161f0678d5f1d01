#include "server/executor/gpu/discarded_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr DiscardedObjects::Bounds kBounds{
    .count = 3, .bytes = 10 * kMiB, .age = std::chrono::seconds(30)};

// Time that passes when the test says so.
struct StandingClock final : Clock {
  TimePoint Now() const override { return now; }
  TimePoint now{};
};

// The handles that were destroyed, in order: the driver's functions are plain C.
std::vector<std::uint64_t> destroyed;

template <typename Handle>
CUresult CUDAAPI Destroy(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    destroyed.push_back(reinterpret_cast<std::uint64_t>(handle));
  } else {
    destroyed.push_back(handle);
  }
  return CUDA_SUCCESS;
}

CudaDriver RecordingDriver() {
  CudaDriver driver;
  driver.EventDestroy = Destroy;
  driver.StreamDestroy = Destroy;
  driver.GraphExecDestroy = Destroy;
  driver.ModuleUnload = Destroy;
  driver.ArrayDestroy = Destroy;
  driver.MipmappedArrayDestroy = Destroy;
  driver.TexObjectDestroy = Destroy;
  driver.SurfObjectDestroy = Destroy;
  return driver;
}

template <typename Handle>
Handle Make(std::uint64_t number) {
  return reinterpret_cast<Handle>(number);
}

class DiscardedObjectsTest : public testing::Test {
 protected:
  void SetUp() override { destroyed.clear(); }

  void AddEvent(std::uint64_t number) { objects_.Add(Make<CUevent>(number)); }
  bool Step(bool is_wanted = false) {
    const std::atomic<bool> wanted = is_wanted;
    return *objects_.Step(nullptr, wanted);
  }

  const CudaDriver driver_ = RecordingDriver();
  StandingClock clock_;
  DiscardedObjects objects_{driver_, clock_, kBounds};
};

TEST_F(DiscardedObjectsTest, ObjectsOfAllKindsStayUntilAStep) {
  DiscardedObjects objects(driver_, clock_, {});
  objects.Add(Make<CUevent>(1));
  objects.Add(Make<CUstream>(2));
  objects.Add(Make<CUgraphExec>(3));
  objects.Add(Make<CUmodule>(4), kMiB);
  objects.Add(Make<CUarray>(5), kMiB);
  objects.Add(Make<CUmipmappedArray>(6), kMiB);
  objects.AddTexture(7);
  objects.AddSurface(8);
  objects.Add(CUevent{});
  EXPECT_THAT(destroyed, IsEmpty());
  EXPECT_EQ(objects.size(), 8U);
  EXPECT_EQ(*objects.Step(nullptr, std::atomic<bool>(false)), false);
  EXPECT_THAT(destroyed, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(objects.size(), 0U);
}

TEST_F(DiscardedObjectsTest, AStepMakesWay) {
  AddEvent(1);
  EXPECT_TRUE(Step(/*is_wanted=*/true));
  EXPECT_THAT(destroyed, IsEmpty());
  EXPECT_FALSE(Step());
  EXPECT_THAT(destroyed, ElementsAre(1));
}

TEST_F(DiscardedObjectsTest, BeyondTheCountTheOldestGoesAtOnce) {
  for (const std::uint64_t number : {1, 2, 3, 4, 5}) AddEvent(number);
  EXPECT_THAT(destroyed, ElementsAre(1, 2));
}

TEST_F(DiscardedObjectsTest, BeyondTheBytesTheOldestGoAtOnce) {
  objects_.Add(Make<CUmodule>(1), 4 * kMiB);
  objects_.Add(Make<CUarray>(2), 6 * kMiB);
  EXPECT_THAT(destroyed, IsEmpty());
  objects_.Add(Make<CUarray>(3), 5 * kMiB);
  EXPECT_THAT(destroyed, ElementsAre(1, 2));
  objects_.Add(Make<CUarray>(4), 11 * kMiB);
  EXPECT_THAT(destroyed, ElementsAre(1, 2, 3, 4)) << "an array beyond the bound by itself";
}

TEST_F(DiscardedObjectsTest, OverdueObjectsGoWithoutIdleTime) {
  AddEvent(1);
  clock_.now += std::chrono::seconds(20);
  AddEvent(2);
  clock_.now += std::chrono::seconds(11);
  EXPECT_EQ(objects_.DestroyOverdue(), 1U);
  EXPECT_EQ(objects_.DestroyOverdue(), 0U);
  EXPECT_THAT(destroyed, ElementsAre(1));
}

TEST_F(DiscardedObjectsTest, OverdueObjectsGoAFewAtATime) {
  DiscardedObjects objects(driver_, clock_, {});
  for (std::uint64_t number = 1; number <= 100; ++number) objects.Add(Make<CUevent>(number));
  clock_.now += std::chrono::hours(1);
  EXPECT_LT(objects.DestroyOverdue(), 10U);
  EXPECT_GT(objects.DestroyOverdue(), 0U);
}

}  // namespace
}  // namespace torpor::executor
