#include "client_shim/core/session/service_thread.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace torpor::shim {
namespace {

// Polls one descriptor, or none, and counts looks and bytes.
class CountingWork final : public ServiceThread::Work {
 public:
  explicit CountingWork(int fd = -1) : fd_(fd) {}

  void set_delay(std::chrono::milliseconds delay) { delay_ = delay; }

  std::optional<ServiceThread::Time> Prepare(std::vector<pollfd>& fds) override {
    if (fd_ >= 0) fds.push_back({fd_, POLLIN, 0});
    if (!delay_) return std::nullopt;
    return std::chrono::steady_clock::now() + *delay_;
  }
  void OnReady(std::span<const pollfd> fds) override {
    const std::lock_guard lock(mutex_);
    ++looks_;
    for (const pollfd& fd : fds)
      if (fd.revents != 0) {
        char byte = 0;
        events_ += read(fd.fd, &byte, 1) == 1 ? 1 : 0;
      }
    changed_.notify_all();
  }
  void AwaitLooks(int looks) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return looks_ >= looks; });
  }
  void AwaitEvents(int events) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return events_ >= events; });
  }

 private:
  const int fd_;
  std::optional<std::chrono::milliseconds> delay_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int looks_ = 0;
  int events_ = 0;
};

TEST(ServiceThreadTest, LooksWhenItIsWoken) {
  CountingWork work;
  ServiceThread thread;
  thread.Wake();  // before the start
  thread.Start(work);
  work.AwaitLooks(1);
  thread.Wake();
  work.AwaitLooks(2);
  thread.Stop();
}

TEST(ServiceThreadTest, LooksWhenADescriptorIsReady) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  CountingWork work(reader.get());
  ServiceThread thread;
  thread.Start(work);
  ASSERT_EQ(write(writer.get(), "x", 1), 1);
  work.AwaitEvents(1);
}

// As for replies that had come before the thread could announce that it polls for them.
TEST(ServiceThreadTest, TheEarliestTimeOfAllIsDueAtOnce) {
  class DueWork final : public ServiceThread::Work {
   public:
    std::optional<ServiceThread::Time> Prepare(std::vector<pollfd>&) override {
      return ServiceThread::Time::min();
    }
    void OnReady(std::span<const pollfd>) override { ++looks; }
    std::atomic<int> looks{0};
  };
  DueWork work;
  ServiceThread thread;
  thread.Start(work);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (work.looks < 3 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_GE(work.looks, 3);
  thread.Stop();
}

TEST(ServiceThreadTest, LooksWhenTheTimeHasCome) {
  CountingWork work;
  work.set_delay(std::chrono::milliseconds(1));
  ServiceThread thread;
  thread.Start(work);
  work.AwaitLooks(3);
}

TEST(ServiceThreadTest, StopsWithoutAStart) {
  ServiceThread thread;
  thread.Stop();
}

}  // namespace
}  // namespace torpor::shim
