#include "base/mutex.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace torpor {
namespace {

TEST(TimedMutexTest, AWaitEndsAtItsDeadline) {
  TimedMutex mutex;
  MutexLock lock(&mutex);
  std::future<bool> acquired = std::async(std::launch::async, [&] {
    const bool is_held = mutex.TryLockUntil(SteadyClock().Now() + std::chrono::milliseconds(1));
    if (is_held) mutex.Unlock();
    return is_held;
  });
  EXPECT_FALSE(acquired.get());
}

TEST(TimedMutexTest, AFreeMutexIsAcquiredAfterTheDeadlineToo) {
  TimedMutex mutex;
  ASSERT_TRUE(mutex.TryLockUntil(SteadyClock().Now() - std::chrono::seconds(1)));
  mutex.Unlock();
}

TEST(MutexTest, ASignalEndsAWait) {
  Mutex mutex;
  absl::CondVar changed;
  bool is_done = false;
  std::thread other([&] {
    const MutexLock lock(&mutex);
    is_done = true;
    changed.Signal();
  });
  {
    const MutexLock lock(&mutex);
    while (!is_done) mutex.WaitFor(changed, absl::InfiniteDuration());
  }
  other.join();
}

}  // namespace
}  // namespace torpor
