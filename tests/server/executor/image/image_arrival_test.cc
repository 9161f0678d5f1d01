#include "server/executor/image/image_arrival.h"

#include <gtest/gtest.h>

#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

// Two groups, of which the second is in two pieces: an allocation [0, 20) that is cut, one [20, 30)
// and one [50, 60) that holds addresses. Nothing is copied; steps are told apart by their events.
class ImageArrivalTest : public testing::Test {
 protected:
  // Which steps must have come: the groups, the last is everything.
  static constexpr int kFirstGroup = 1;
  static constexpr int kSecondGroup = 2;
  static constexpr int kAll = 3;

  void SetUp() override {
    device_ = *Device::Open(cuda_.driver(), 0);
    arrival_ = std::make_unique<ImageArrival>(*device_);
    user_ = *device_->CreateStream();
    Begin();
  }
  void Begin() {
    ASSERT_NO_FATAL_FAILURE(BeginWithoutCopies());
    ASSERT_TRUE(arrival_->EnqueueAll().ok());
    EXPECT_EQ(enqueued_, kAll);
  }
  void BeginWithoutCopies() {
    cuda_.Release();  // an earlier arrival's
    cuda_.HoldStreams();
    enqueued_ = 0;
    const auto enqueue = [this] {
      if (++enqueued_ == fails_at_) return absl::InternalError("as the test wants");
      return absl::OkStatus();
    };
    ASSERT_TRUE(
        arrival_
            ->Begin({{{0, 20}}, {{20, 30}}, {{50, 60}, true}}, {{{0, 10}, {50, 60}}, {{10, 30}}},
                    {.enqueue_group = [enqueue](const memory::SwapGroup&) { return enqueue(); },
                     .enqueue_last = enqueue,
                     .on_complete = [this] { ++completed_; }})
            .ok());
  }
  // After how many steps work that is enqueued now runs; 0 if it waits for nothing.
  int StepsWaitedFor() {
    EXPECT_EQ(arrival_->Pass(user_), CUDA_SUCCESS);
    return StepsUntilRun();
  }
  int StepsUntilRun() {
    std::uint64_t value = ++launched_;
    void* parameters[] = {&value};
    cuda_.driver().LaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, user_, parameters, nullptr);
    cuda_.ReleaseUpTo(arrival_->stream(), 0);
    int steps = 0;
    for (; cuda_.launches().size() < launched_ && steps < kAll; ++steps) {
      cuda_.ReleaseUpTo(arrival_->stream(), 1);
    }
    return steps;
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ImageArrival> arrival_;
  CUstream user_ = nullptr;
  std::size_t launched_ = 0;
  int enqueued_ = 0;  // steps of the present arrival
  int fails_at_ = 0;  // the step that cannot be enqueued; 0: none
  int completed_ = 0;
};

TEST_F(ImageArrivalTest, WhatIsNeededIsEnqueuedByWhoeverNeedsIt) {
  BeginWithoutCopies();
  EXPECT_TRUE(arrival_->is_pending());
  arrival_->Need({30, 50}, true);
  EXPECT_EQ(arrival_->Pass(user_), CUDA_SUCCESS);
  EXPECT_EQ(enqueued_, 0) << "no group has these bytes";
  arrival_->Need({5, 10}, true);
  EXPECT_EQ(StepsWaitedFor(), kFirstGroup);
  EXPECT_EQ(enqueued_, kFirstGroup);
  EXPECT_EQ(arrival_->EnqueueGroup().value(), false) << "the second is the last";
  EXPECT_EQ(enqueued_, kSecondGroup);
  EXPECT_EQ(arrival_->EnqueueGroup().value(), false);
  EXPECT_EQ(enqueued_, kSecondGroup) << "the end is no group";
  arrival_->NeedAll();
  EXPECT_EQ(arrival_->Pass(user_), CUDA_SUCCESS);
  EXPECT_EQ(enqueued_, kAll);
}

TEST_F(ImageArrivalTest, AnErrorEndsEnqueueingForAll) {
  fails_at_ = kSecondGroup;
  BeginWithoutCopies();
  arrival_->Need({5, 10}, true);
  EXPECT_EQ(StepsWaitedFor(), kFirstGroup);
  arrival_->Need({15, 16}, true);
  EXPECT_NE(arrival_->Pass(user_), CUDA_SUCCESS);
  EXPECT_FALSE(arrival_->EnqueueGroup().ok());
  EXPECT_FALSE(arrival_->WaitForOthers().ok());
  EXPECT_FALSE(arrival_->Wait().ok());
  EXPECT_EQ(enqueued_, kSecondGroup) << "no step is tried twice";
  arrival_->Abandon();
  EXPECT_FALSE(arrival_->is_pending());
  EXPECT_TRUE(arrival_->Wait().ok());
}

TEST_F(ImageArrivalTest, WorkThatNeedsNothingDoesNotWait) {
  arrival_->Need({30, 50}, true);
  arrival_->NeedPointee(35, SwapWait::kAllocation);
  EXPECT_EQ(StepsWaitedFor(), 0);
  EXPECT_TRUE(arrival_->is_pending());
}

TEST_F(ImageArrivalTest, ExactBytesWaitForTheirGroups) {
  arrival_->Need({5, 10}, true);
  EXPECT_EQ(StepsWaitedFor(), kFirstGroup);
}

TEST_F(ImageArrivalTest, AddressesInMemoryThatCameLaterLeadAnywhere) {
  arrival_->NoteAddresses({30, 38});
  arrival_->NeedPointee(30, SwapWait::kAllocation);
  EXPECT_EQ(StepsWaitedFor(), kAll);
  Begin();
  arrival_->NeedPointee(35, SwapWait::kAllocation);
  EXPECT_EQ(StepsWaitedFor(), 0) << "another swap-in knows of all allocations";
}

TEST_F(ImageArrivalTest, BytesOfTwoGroupsWaitForTheLater) {
  arrival_->Need({5, 11}, true);
  EXPECT_EQ(StepsWaitedFor(), kSecondGroup);
}

TEST_F(ImageArrivalTest, APointerNeedsTheWholeAllocation) {
  arrival_->NeedPointee(5, SwapWait::kAllocation);
  EXPECT_EQ(StepsWaitedFor(), kSecondGroup);
}

TEST_F(ImageArrivalTest, OrOnlyTheGroupWhereItPoints) {
  arrival_->NeedPointee(5, SwapWait::kRange);
  EXPECT_EQ(StepsWaitedFor(), kFirstGroup);
}

TEST_F(ImageArrivalTest, WhatHoldsAddressesLeadsAnywhere) {
  arrival_->NeedPointee(55, SwapWait::kRange);
  EXPECT_EQ(StepsWaitedFor(), kAll);
}

TEST_F(ImageArrivalTest, SoDoesReadingIt) {
  arrival_->Need({55, 56}, true);
  EXPECT_EQ(StepsWaitedFor(), kAll);
}

TEST_F(ImageArrivalTest, WritingItDoesNot) {
  arrival_->Need({55, 56}, false);
  EXPECT_EQ(StepsWaitedFor(), kFirstGroup);
}

TEST_F(ImageArrivalTest, AddressesMayComeMeanwhile) {
  arrival_->NoteAddresses({22, 30});
  arrival_->NeedPointee(20, SwapWait::kAllocation);
  EXPECT_EQ(StepsWaitedFor(), kAll);
}

TEST_F(ImageArrivalTest, AStreamWaitsOnceForAGroupAndThoseBefore) {
  arrival_->Need({15, 16}, true);
  EXPECT_EQ(arrival_->Pass(user_), CUDA_SUCCESS);
  const std::size_t before = cuda_.waits_enqueued();
  arrival_->Need({5, 6}, true);
  EXPECT_EQ(arrival_->Pass(user_), CUDA_SUCCESS);
  arrival_->Need({15, 16}, true);
  EXPECT_EQ(arrival_->Pass(user_), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.waits_enqueued(), before);
  arrival_->Forget(user_);  // another stream may get its handle
  arrival_->Need({5, 6}, true);
  EXPECT_EQ(arrival_->Pass(user_), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.waits_enqueued(), before + 1);
  EXPECT_EQ(StepsUntilRun(), kSecondGroup);
}

TEST_F(ImageArrivalTest, TellsItsEndOnce) {
  cuda_.Release();
  EXPECT_EQ(completed_, 1);
  EXPECT_FALSE(arrival_->is_pending());
  arrival_->NeedAll();
  const std::size_t before = cuda_.waits_enqueued();
  EXPECT_EQ(arrival_->Pass(user_), CUDA_SUCCESS);
  EXPECT_EQ(cuda_.waits_enqueued(), before) << "nothing is left to wait for";
}

TEST_F(ImageArrivalTest, EventsServeAgain) {
  cuda_.Release();
  const std::size_t events = cuda_.live_events();
  Begin();
  EXPECT_EQ(cuda_.live_events(), events);
  arrival_->Need({5, 6}, true);
  EXPECT_EQ(StepsWaitedFor(), kFirstGroup);
}

}  // namespace
}  // namespace torpor::executor
