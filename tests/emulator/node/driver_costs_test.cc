#include "emulator/node/driver_costs.h"

#include <gtest/gtest.h>

#include "emulator/node/topology.h"

namespace torpor::emulator {
namespace {

NodeResult<Topology> ParseCosts(const std::string& costs) {
  return ParseTopology("version: v1\ngpus: [{memory: 1GiB}]\n" + costs, "node.yaml");
}

TEST(DriverCostsTest, WhatIsNotSaidIsAsMeasured) {
  const DriverCosts costs = ParseCosts("")->costs;
  EXPECT_EQ(costs.vmm.set_access_us, 27);
  EXPECT_EQ(costs.launch_us, 3.3);
  EXPECT_EQ(costs.pin_ms_per_gib, 29);
}

TEST(DriverCostsTest, ReadsEveryCost) {
  const auto topology = ParseCosts(
      "costs:\n"
      "  vmm_us: {create: 1, map: 2, set_access: 3, unmap: 4, export: 5, import: 6}\n"
      "  pin_ms_per_gib: 7\n  launch_us: 8\n  copy_call_us: 9\n  module_ms: 10\n"
      "  context_memory: 11MiB\n  cublas_memory: 12MiB\n");
  ASSERT_TRUE(topology.ok()) << topology.failure().message;
  const DriverCosts& costs = topology->costs;
  EXPECT_EQ(costs.vmm.create_us, 1);
  EXPECT_EQ(costs.vmm.map_us, 2);
  EXPECT_EQ(costs.vmm.set_access_us, 3);
  EXPECT_EQ(costs.vmm.unmap_us, 4);
  EXPECT_EQ(costs.vmm.export_us, 5);
  EXPECT_EQ(costs.vmm.import_us, 6);
  EXPECT_EQ(costs.pin_ms_per_gib, 7);
  EXPECT_EQ(costs.launch_us, 8);
  EXPECT_EQ(costs.copy_call_us, 9);
  EXPECT_EQ(costs.module_ms, 10);
  EXPECT_EQ(costs.ContextMemory(kGiB), 11 * kMiB);
  EXPECT_EQ(costs.CublasMemory(kGiB), 12 * kMiB);
}

TEST(DriverCostsTest, ASmallGpuHasASmallContext) {
  const DriverCosts costs;
  EXPECT_EQ(costs.ContextMemory(141 * kGiB), 527 * kMiB);
  EXPECT_EQ(costs.ContextMemory(256 * kMiB), 32 * kMiB);
  EXPECT_EQ(costs.CublasMemory(141 * kGiB), 64 * kMiB);
  EXPECT_EQ(costs.CublasMemory(256 * kMiB), 2 * kMiB);
}

TEST(DriverCostsTest, BadCostsAreErrors) {
  EXPECT_FALSE(ParseCosts("costs: {launch_us: -1}").ok());
  EXPECT_FALSE(ParseCosts("costs: {vmm_us: {mapping: 2}}").ok());
  EXPECT_FALSE(ParseCosts("costs: {context_memory: lots}").ok());
  EXPECT_FALSE(ParseCosts("costs: {context_memory: [1]}").ok());
}

}  // namespace
}  // namespace torpor::emulator
