#include "scheduler/keep_alives.h"

#include "tests/scheduler/parts_test.h"

namespace torpor::scheduler {
namespace {

using std::chrono::seconds;

class KeepAlivesTest : public PartsTest {
 protected:
  KeepAlivesTest() {
    AddGpu(kHere, 100);
    Put(Add(1, 60), kHere);
    node_.functions.at(FunctionId{1}).keep_alive = seconds(10);
    keep_alives_.Note(instance(1));
  }
};

TEST_F(KeepAlivesTest, AnImageLeavesWhenItIsNotUsed) {
  keep_alives_.End();
  EXPECT_EQ(Only<WakeUp>()->when, TimePoint(seconds(10)));
  Pass(seconds(10));
  keep_alives_.End();
  EXPECT_EQ(Only<SwapOut>()->reason, SwapOutReason::kKeepAliveOver);
}

TEST_F(KeepAlivesTest, AUseBeginsItAnew) {
  Pass(seconds(6));
  instance(1).image.NoteUse(outbox_.now());
  keep_alives_.Note(instance(1));
  Pass(seconds(6));
  keep_alives_.End();
  EXPECT_EQ(Only<WakeUp>()->when, TimePoint(seconds(16)));
}

TEST_F(KeepAlivesTest, PinnedAndWantedImagesStay) {
  instance(1).image.is_pinned = true;
  Pass(seconds(10));
  keep_alives_.End();
  EXPECT_TRUE(outbox_.Take().empty());
  instance(1).image.is_pinned = false;
  keep_alives_.Note(instance(1));
  Wait(1, instance(1));
  keep_alives_.End();
  EXPECT_TRUE(outbox_.Take().empty());
}

TEST_F(KeepAlivesTest, AFunctionMayLoseItsKeepAlive) {
  node_.functions.at(FunctionId{1}).keep_alive = {};
  keep_alives_.Note(instance(1));
  Pass(seconds(99));
  keep_alives_.End();
  EXPECT_TRUE(outbox_.Take().empty());
}

}  // namespace
}  // namespace torpor::scheduler
