#include "emulator/node/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace torpor::emulator {
namespace {

using testing::HasSubstr;

TEST(EnvironmentTest, VisibleDevicesSelectAndReorder) {
  std::vector<GpuSpec> gpus;
  for (const char* name : {"a", "b", "c"}) {
    gpus.emplace_back();
    gpus.back().name = name;
  }
  const auto names = [&](const char* visible) {
    std::string joined;
    for (const GpuSpec& spec : SelectVisible(gpus, visible)) joined += spec.name;
    return joined;
  };
  EXPECT_EQ(names("2,0"), "ca");
  EXPECT_EQ(names("1,7,0"), "b");
  EXPECT_EQ(names(""), "");
  EXPECT_EQ(names("-1"), "");
  EXPECT_EQ(names("0,0"), "a");
  EXPECT_EQ(names("1junk"), "");
  EXPECT_EQ(names("0 1"), "");
}

TEST(EnvironmentTest, CountMemoryAndCapabilityMakeANode) {
  setenv("TORPOR_EMULATOR_GPUS", "3", 1);
  setenv("TORPOR_EMULATOR_MEMORY", "64MiB", 1);
  setenv("TORPOR_EMULATOR_COMPUTE_CAPABILITY", "7.5", 1);
  setenv("CUDA_VISIBLE_DEVICES", "2", 1);
  const auto node = NodeFromEnvironment();
  ASSERT_TRUE(node.ok()) << node.failure().message;
  EXPECT_EQ(node->topology.gpus.size(), 3U);
  ASSERT_EQ(node->gpus.size(), 1U);
  EXPECT_EQ(node->gpus[0].place, 2U);
  EXPECT_EQ(node->gpus[0].memory, 64 * kMiB);
  EXPECT_EQ(node->gpus[0].compute_capability, 75U);
}

TEST(EnvironmentTest, StrictnessHoldsWhereNoFileSays) {
  const std::string path = testing::TempDir() + "strict-" + std::to_string(getpid()) + ".yaml";
  std::ofstream(path) << "version: v1\nstrict: {costs: true}\ngpus: [{memory: 1GiB}]\n";
  setenv("TORPOR_EMULATOR_STRICT", "true", 1);
  EXPECT_EQ(NodeFromEnvironment()->topology.strict, Strictness::All());
  setenv("TORPOR_EMULATOR_TOPOLOGY", path.c_str(), 1);
  EXPECT_EQ(NodeFromEnvironment()->topology.strict, (Strictness{.costs = true}));
  std::ofstream(path) << "version: v1\ngpus: [{memory: 1GiB}]\n";
  EXPECT_EQ(NodeFromEnvironment()->topology.strict, Strictness::All());
  setenv("TORPOR_EMULATOR_STRICT", "somewhat", 1);
  EXPECT_THAT(NodeFromEnvironment().failure().message, HasSubstr("TORPOR_EMULATOR_STRICT"));
  std::remove(path.c_str());
}

TEST(EnvironmentTest, BadValuesAreNamed) {
  setenv("TORPOR_EMULATOR_GPUS", "65", 1);
  EXPECT_THAT(NodeFromEnvironment().failure().message, HasSubstr("TORPOR_EMULATOR_GPUS"));
  setenv("TORPOR_EMULATOR_GPUS", "2", 1);
  setenv("TORPOR_EMULATOR_MEMORY", "lots", 1);
  EXPECT_THAT(NodeFromEnvironment().failure().message, HasSubstr("TORPOR_EMULATOR_MEMORY"));
  setenv("TORPOR_EMULATOR_MEMORY", "64MiB", 1);
  for (const char* wrong : {"new", "4.9", "20.1", "7.5x", "nan"}) {
    setenv("TORPOR_EMULATOR_COMPUTE_CAPABILITY", wrong, 1);
    EXPECT_THAT(NodeFromEnvironment().failure().message,
                HasSubstr("TORPOR_EMULATOR_COMPUTE_CAPABILITY"));
  }
  setenv("TORPOR_EMULATOR_TOPOLOGY", "/nonexistent/node.yaml", 1);
  EXPECT_THAT(NodeFromEnvironment().failure().message, HasSubstr("/nonexistent/node.yaml"));
  setenv("TORPOR_EMULATOR_TOPOLOGY", "/", 1);
  EXPECT_THAT(NodeFromEnvironment().failure().message, HasSubstr("cannot read"));
}

}  // namespace
}  // namespace torpor::emulator
