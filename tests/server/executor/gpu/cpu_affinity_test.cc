#include "server/executor/gpu/cpu_affinity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace torpor::executor {
namespace {

TEST(CpuAffinityTest, AListHasNumbersAndRanges) {
  const auto cpus = ParseCpuList("0-2,8\n");
  ASSERT_TRUE(cpus);
  EXPECT_EQ(CPU_COUNT(&*cpus), 4);
  EXPECT_TRUE(CPU_ISSET(2, &*cpus));
  EXPECT_TRUE(CPU_ISSET(8, &*cpus));
  for (const char* const bad : {"", "x", "1-", "3-1", "-1", "1,,2", "99999"}) {
    EXPECT_FALSE(ParseCpuList(bad)) << bad;
  }
}

// Each test changes the affinity of a thread of its own.
class RunNearDeviceTest : public testing::Test {
 protected:
  RunNearDeviceTest() {
    std::filesystem::create_directories(devices_ + "/0000:3b:00.0");
    sched_getaffinity(0, sizeof usable_, &usable_);
  }
  ~RunNearDeviceTest() override { std::filesystem::remove_all(devices_); }

  int Run(const std::string& list, const std::string& node = "0\n") {
    std::ofstream(devices_ + "/0000:3b:00.0/local_cpulist") << list;
    std::ofstream(devices_ + "/0000:3b:00.0/numa_node") << node;
    int count = -1;
    std::thread([&] {
      count = RunNearDevice("0000:3B:00.0", devices_);
      sched_getaffinity(0, sizeof after_, &after_);
    }).join();
    return count;
  }

  int first() const {
    int cpu = 0;
    while (!CPU_ISSET(static_cast<std::size_t>(cpu), &usable_)) ++cpu;
    return cpu;
  }

  const std::string devices_ = testing::TempDir() + "devices-" + std::to_string(getpid());
  cpu_set_t usable_{};
  cpu_set_t after_{};
};

TEST_F(RunNearDeviceTest, OnlyUsableCpusAreChosen) {
  if (CPU_COUNT(&usable_) < 2) GTEST_SKIP() << "there is one CPU, and so nothing to choose";
  EXPECT_EQ(Run(std::to_string(first()) + "," + std::to_string(CPU_SETSIZE - 1)), 1);
  EXPECT_EQ(CPU_COUNT(&after_), 1);
  EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(first()), &after_));
}

TEST_F(RunNearDeviceTest, ADeviceWithoutANodeBindsNobody) {
  EXPECT_EQ(Run(std::to_string(first()), "-1\n"), 0);
  EXPECT_TRUE(CPU_EQUAL(&after_, &usable_));
}

TEST_F(RunNearDeviceTest, TheOnlyNodeIsNoChoice) {
  EXPECT_EQ(Run("0-" + std::to_string(CPU_SETSIZE - 1)), 0);
  EXPECT_TRUE(CPU_EQUAL(&after_, &usable_));
}

TEST_F(RunNearDeviceTest, WithoutUsableCpusAllStaysAsItWas) {
  EXPECT_EQ(Run(std::to_string(CPU_SETSIZE - 1)), 0);
  EXPECT_TRUE(CPU_EQUAL(&after_, &usable_));
  EXPECT_EQ(Run("nonsense"), 0);
  EXPECT_EQ(RunNearDevice("0000:FF:00.0", devices_), 0);
}

}  // namespace
}  // namespace torpor::executor
