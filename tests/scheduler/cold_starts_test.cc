#include "scheduler/cold_starts.h"

#include "tests/scheduler/parts_test.h"

namespace torpor::scheduler {
namespace {

class ColdStartsTest : public PartsTest {
 protected:
  ColdStartsTest() : PartsTest({.binding = MakeResidentBinding(), .images = {.evicts = false}}) {
    AddGpu(kHere, 100);
    Wait(1, Add(1, 60));
  }
  void Fail() {
    images_.Drop(instance(1), kHere);
    EXPECT_TRUE(cold_starts_.OnSwapInFailed(instance(1)));
  }

  ColdStarts cold_starts_{node_, *binding_, *placement_, queue_, images_, outbox_};
};

TEST_F(ColdStartsTest, TheImageComesBesideWhateverRuns) {
  gpu(kHere).tenant = InstanceId{9};
  cold_starts_.Serve();
  EXPECT_EQ(Only<SwapIn>()->gpu, kHere);
  EXPECT_EQ(instance(1).bound_gpu, kHere);
  cold_starts_.Serve();  // it comes already
  EXPECT_TRUE(outbox_.Take().empty());
  images_.OnPresent(instance(1), kHere);
  queue_.Update(instance(1));
  cold_starts_.Serve();
  EXPECT_TRUE(queue_.cold().empty());
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(ColdStartsTest, RequestsAreRefusedWhereThereIsNoRoom) {
  Put(Add(2, 60), kHere);
  cold_starts_.Serve();
  EXPECT_EQ(Only<Refuse>()->reason, Refusal::kNoRoom);
}

TEST_F(ColdStartsTest, AFailedStartIsTriedAgainAfterPausesThatDouble) {
  Duration pause = ColdStarts::kFirstPause;
  for (int i = 1; i < ColdStarts::kMaxTries; ++i) {
    cold_starts_.Serve();
    EXPECT_TRUE(Only<SwapIn>());
    Fail();
    cold_starts_.Serve();
    EXPECT_EQ(Only<WakeUp>()->when, outbox_.now() + pause);
    Pass(pause);
    pause *= 2;
  }
  cold_starts_.Serve();
  EXPECT_TRUE(Only<SwapIn>());
  Fail();
  EXPECT_EQ(Only<Refuse>()->reason, Refusal::kSwapFailed);
}

}  // namespace
}  // namespace torpor::scheduler
