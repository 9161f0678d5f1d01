#include "server/executor/runtime/launch_calls.h"

#include <driver_types.h>
#include <gmock/gmock.h>

#include "proto/cuda_api/launch_cluster.h"
#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

class LaunchCallsTest : public RuntimeTest {
 protected:
  static wire::LaunchKernel Launch(const std::uint64_t& value) {
    wire::LaunchKernel launch;
    launch.kernel = 2;
    launch.grid = launch.block = {1, 1, 1};
    launch.parameters = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
    return launch;
  }

  SessionTextures textures_{*s_.device};
  KernelParameters parameters_{*s_.memory, modules_, textures_};
  LaunchCalls calls_{*s_.device, modules_, parameters_, streams_, s_.memory->image()};
};

TEST_F(LaunchCallsTest, AKernelGetsItsParameters) {
  ASSERT_NO_FATAL_FAILURE(LoadKernel());
  EXPECT_TRUE(calls_.LaunchKernel(Launch(41)).ok());
  EXPECT_TRUE(calls_.LaunchKernel(Launch(42)).ok());
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(41, 42));
}

TEST_F(LaunchCallsTest, WhatIsNotTheSessionsIsNotLaunched) {
  EXPECT_EQ(calls_.LaunchKernel(Launch(41)).code, cudaErrorInvalidDeviceFunction);
  ASSERT_NO_FATAL_FAILURE(LoadKernel());
  const std::uint64_t value = 41;
  wire::LaunchKernel launch = Launch(value);
  launch.stream = 4711;
  EXPECT_EQ(calls_.LaunchKernel(launch).code, cudaErrorInvalidResourceHandle);
  launch = Launch(value);
  launch.parameters = launch.parameters.first(7);
  EXPECT_EQ(calls_.LaunchKernel(launch).code, cudaErrorInvalidValue) << "too few bytes";
  EXPECT_TRUE(s_.cuda.launches().empty());
}

TEST_F(LaunchCallsTest, AttributesReachTheDriver) {
  ASSERT_NO_FATAL_FAILURE(LoadKernel());
  const std::uint64_t value = 41;
  wire::LaunchKernel launch = Launch(value);
  launch.flags = wire::kLaunchCooperative | wire::FlagsOf({4, 2, 1, 1});
  EXPECT_TRUE(calls_.LaunchKernel(launch).ok());
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(41));
  const std::vector<CUlaunchAttribute>& attributes = s_.cuda.last_attributes();
  ASSERT_EQ(attributes.size(), 3U);
  EXPECT_EQ(attributes[0].id, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  EXPECT_EQ(attributes[0].value.cooperative, 1);
  EXPECT_EQ(attributes[1].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  EXPECT_EQ(attributes[1].value.clusterDim.x, 4U);
  EXPECT_EQ(attributes[1].value.clusterDim.y, 2U);
  EXPECT_EQ(attributes[1].value.clusterDim.z, 1U);
  EXPECT_EQ(attributes[2].id, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
  EXPECT_EQ(attributes[2].value.clusterSchedulingPolicyPreference,
            CU_CLUSTER_SCHEDULING_POLICY_SPREAD);
}

}  // namespace
}  // namespace torpor::executor
