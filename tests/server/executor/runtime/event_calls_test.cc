#include "server/executor/runtime/event_calls.h"

#include <driver_types.h>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

class EventCallsTest : public RuntimeTest {
 protected:
  EventSet events_{*s_.device};
  EventCalls calls_{*s_.device, events_, streams_, marks_};
};

TEST_F(EventCallsTest, ARecordIsMarked) {
  ASSERT_TRUE(calls_.EventCreate({5, 0}).ok());
  wire::EventRecord record;
  record.event = 5;
  record.slot = 3;
  record.value = 7;
  EXPECT_TRUE(calls_.EventRecord(record).ok());
  EXPECT_EQ(s_.memory->window().Slot(3)->load(), 7u);
  wire::EventSynchronizeResult nothing;
  EXPECT_TRUE(calls_.EventSynchronize({5}, nothing).ok());
  EXPECT_TRUE(calls_.EventDestroy({5}).ok());
  EXPECT_EQ(calls_.EventRecord(record).code, cudaErrorInvalidResourceHandle);
}

TEST_F(EventCallsTest, TimeElapsesBetweenEventsOfAnotherGpu) {
  ASSERT_TRUE(calls_.EventCreate({5, 0}).ok());
  ASSERT_TRUE(calls_.EventCreate({6, 0}).ok());
  ASSERT_TRUE(calls_.EventImport({5, 1'000'000}).ok());
  ASSERT_TRUE(calls_.EventImport({6, 3'500'000}).ok());
  wire::EventElapsedTimeResult result;
  ASSERT_TRUE(calls_.EventElapsedTime({5, 6}, result).ok());
  EXPECT_FLOAT_EQ(result.milliseconds, 2.5f);
  EXPECT_EQ(calls_.EventElapsedTime({5, 99}, result).code, cudaErrorInvalidResourceHandle);
}

}  // namespace
}  // namespace torpor::executor
