#include "base/loop_watch.h"

#include <gtest/gtest.h>

#include <deque>

namespace torpor {
namespace {

TEST(LoopWatchTest, ALoopTurnsThatHasRunItsTask) {
  std::deque<LoopWatch::Task> queue;
  LoopWatch watch([&](LoopWatch::Task task) { queue.push_back(std::move(task)); });
  EXPECT_TRUE(watch.Turns());
  EXPECT_FALSE(watch.Turns());
  EXPECT_FALSE(watch.Turns());
  ASSERT_EQ(queue.size(), 1u) << "a loop that hangs gets no more tasks";
  queue.front()();
  EXPECT_TRUE(watch.Turns());
  EXPECT_EQ(queue.size(), 2u);
}

TEST(LoopWatchTest, ATaskMayOutliveItsWatch) {
  LoopWatch::Task late;
  LoopWatch([&](LoopWatch::Task task) { late = std::move(task); }).Turns();
  late();
}

}  // namespace
}  // namespace torpor
