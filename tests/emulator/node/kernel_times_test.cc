#include "emulator/node/kernel_times.h"

#include <gtest/gtest.h>

#include <chrono>

namespace torpor::emulator {
namespace {

TEST(KernelTimesTest, TheFirstMatchCounts) {
  Topology topology;
  topology.time_scale = 10;
  topology.kernels = {{"*conv_large*", 200}, {"*conv*", 12.5}, {"exact", 0}};
  KernelTimes times(topology);
  EXPECT_EQ(times.Of("_Z10conv_largePf"), std::chrono::milliseconds(2));
  EXPECT_EQ(times.Of("_Z4convPf"), std::chrono::microseconds(125));
  EXPECT_EQ(times.Of("_Z4convPf"), std::chrono::microseconds(125));
  EXPECT_EQ(times.Of("exact"), Duration::zero());
  EXPECT_EQ(times.Of("exactly"), std::nullopt);
}

TEST(KernelTimesTest, WithoutEntriesNoKernelIsModelled) {
  EXPECT_EQ(KernelTimes(Topology()).Of("anything"), std::nullopt);
}

}  // namespace
}  // namespace torpor::emulator
