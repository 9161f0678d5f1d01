#include "server/controller/model/step_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace torpor::server {
namespace {

TEST(StepQueue, RunsOneAfterAnother) {
  StepQueue queue;
  std::vector<int> order;
  StepQueue::Finish finish_first;
  queue.Add([&](const StepQueue::Finish& finish) {
    order.push_back(1);
    finish_first = finish;
  });
  queue.Add([&](const StepQueue::Finish& finish) {
    order.push_back(2);
    finish();
  });
  EXPECT_EQ(order, std::vector<int>{1});
  finish_first();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_TRUE(queue.idle());
}

TEST(StepQueue, AStepMayAddSteps) {
  StepQueue queue;
  std::vector<int> order;
  queue.Add([&](const StepQueue::Finish& finish) {
    queue.Add([&](const StepQueue::Finish& finish_inner) {
      order.push_back(2);
      finish_inner();
    });
    order.push_back(1);
    finish();
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(StepQueue, ManyImmediateStepsNeedNoStack) {
  StepQueue queue;
  StepQueue::Finish start;
  int count = 0;
  queue.Add([&](const StepQueue::Finish& finish) { start = finish; });
  for (int i = 0; i < 200'000; ++i) {
    queue.Add([&](const StepQueue::Finish& finish) {
      ++count;
      finish();
    });
  }
  start();
  EXPECT_EQ(count, 200'000);
}

}  // namespace
}  // namespace torpor::server
