#include "server/node/thread_loop.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace torpor::server {
namespace {

TEST(ThreadLoop, RunsTasksInOrderOnItsThread) {
  ThreadLoop loop;
  std::promise<std::vector<int>> result;
  std::vector<int> order;
  loop.Post([&] {
    EXPECT_TRUE(loop.IsLoopThread());
    order.push_back(1);
    loop.Post([&] { order.push_back(2); });
  });
  loop.Post([&] {
    order.push_back(3);
    result.set_value(order);
  });
  EXPECT_EQ(result.get_future().get(), (std::vector<int>{1, 2, 3}));
}

TEST(ThreadLoop, TimersRunInTheirOrder) {
  ThreadLoop loop;
  std::promise<std::vector<int>> result;
  std::vector<int> order;
  loop.Post([&] {
    const TimePoint now = loop.Now();
    loop.RunAt(now + std::chrono::milliseconds(3), [&] {
      order.push_back(2);
      result.set_value(order);
    });
    loop.RunAt(now + std::chrono::milliseconds(1), [&] { order.push_back(1); });
  });
  EXPECT_EQ(result.get_future().get(), (std::vector<int>{1, 2}));
}

TEST(ThreadLoop, BackgroundWorkComesBack) {
  ThreadLoop loop;
  std::promise<bool> result;
  loop.Post([&] {
    loop.InBackground([&] { EXPECT_FALSE(loop.IsLoopThread()); },
                      [&] { result.set_value(loop.IsLoopThread()); });
  });
  EXPECT_TRUE(result.get_future().get());
}

TEST(ThreadLoop, StopsWithTimersPending) {
  ThreadLoop loop;
  std::promise<void> armed;
  loop.Post([&] {
    loop.RunAt(loop.Now() + std::chrono::hours(1), [] { FAIL(); });
    armed.set_value();
  });
  armed.get_future().wait();
  loop.Stop();
}

}  // namespace
}  // namespace torpor::server
