#include "scheduler/idle_write_back.h"

#include "tests/scheduler/parts_test.h"

namespace torpor::scheduler {
namespace {

using std::chrono::milliseconds;

class IdleWriteBackTest : public PartsTest {
 protected:
  IdleWriteBackTest() {
    AddGpu(kHere, 100);
    Put(Add(1, 60), kHere);
    instance(1).image.copies.at(kHere).is_unsaved = true;
    images_.Rank(instance(1));
  }

  IdleWriteBack idle_{node_, queue_, images_, milliseconds(10), outbox_};
};

TEST_F(IdleWriteBackTest, AnIdleGpuWritesBackAfterThePause) {
  idle_.Serve();
  EXPECT_EQ(Only<WakeUp>()->when, TimePoint(milliseconds(10)));
  Pass(milliseconds(10));
  idle_.Serve();
  EXPECT_EQ(Only<WriteBack>()->instance, InstanceId{1});
  idle_.Serve();  // one at a time
  EXPECT_TRUE(outbox_.Take().empty());
}

TEST_F(IdleWriteBackTest, ThePauseBeginsAnewAfterATenant) {
  idle_.Serve();
  outbox_.Take();
  Pass(milliseconds(9));
  gpu(kHere).tenant = InstanceId{1};
  idle_.Serve();
  gpu(kHere).tenant = {};
  Pass(milliseconds(9));
  idle_.Serve();
  EXPECT_EQ(Only<WakeUp>()->when, TimePoint(milliseconds(28)));
}

TEST_F(IdleWriteBackTest, AGpuThatSomebodyWaitsForIsNotIdle) {
  Wait(1, Add(2, 101));  // too large for it
  idle_.Serve();
  EXPECT_TRUE(gpu(kHere).idle_since);
  Wait(2, Add(3, 100));
  idle_.Serve();
  EXPECT_FALSE(gpu(kHere).idle_since);
}

TEST_F(IdleWriteBackTest, WithoutAPauseNothingIsWrittenBack) {
  IdleWriteBack never(node_, queue_, images_, {}, outbox_);
  never.Serve();
  EXPECT_TRUE(outbox_.Take().empty());
}

}  // namespace
}  // namespace torpor::scheduler
