#include "tools/sim/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>

namespace torpor::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

class SimulationTest : public testing::Test {
 protected:
  // `functions` functions of one model at a constant rate for two minutes.
  Scenario Make(const std::string& system, const std::string& model, std::size_t functions,
                double requests_per_minute) {
    Scenario scenario;
    scenario.profiles = &profiles_;
    scenario.node = &node_;
    scenario.system = *SystemNamed(system);
    scenario.functions = FunctionsInTurn(profiles_, {*FindModel(profiles_, model)}, functions);
    scenario.rates = workload::ConstantRates(std::vector<double>(functions, requests_per_minute));
    scenario.length = minutes(2);
    return scenario;
  }

  static std::uint64_t Arrived(const Outcome& outcome) {
    std::uint64_t sum = 0;
    for (const FunctionOutcome& function : outcome.functions) sum += function.arrived;
    return sum;
  }

  Profiles profiles_ = PaperProfiles();
  NodeModel node_ = *ReadNodeModel("paper-4gpu", profiles_.reserved);
};

TEST_F(SimulationTest, EveryRequestIsAccountedFor) {
  for (const System& system : Systems()) {
    const Outcome outcome = Simulate(Make(system.name, "resnet-152", 500, 10));
    std::uint64_t ended = 0;
    for (const FunctionOutcome& function : outcome.functions) {
      EXPECT_EQ(function.served(), function.latencies_us.size());
      ended += function.served() + function.refused + function.unserved;
    }
    EXPECT_GT(ended, 0u);
    EXPECT_EQ(ended, Arrived(outcome)) << system.name;
  }
}

TEST_F(SimulationTest, EachPartOfTorporPlusDecidesSomething) {
  const auto hash_of = [&](const std::string& system) {
    Scenario scenario = Make(system, "resnet-152", 600, 0);
    // More than the GPUs can do.
    scenario.functions = FunctionsInTurn(profiles_, {0, 6, 7}, 600);
    scenario.rates = workload::ConstantRates(std::vector<double>(600, 15));
    return Simulate(scenario).hash;
  };
  std::set<std::uint64_t> hashes = {hash_of("torpor"), hash_of("torpor-plus")};
  for (const System& system : Systems()) {
    if (!system.without) continue;
    EXPECT_TRUE(hashes.insert(hash_of(system.name)).second) << system.name;
  }
  EXPECT_EQ(hashes.size(), 7u);
}

TEST_F(SimulationTest, ALoneResidentFunctionTakesTheProfilesTime) {
  Scenario scenario = Make("torpor", "bert-qa", 1, 30);
  scenario.arrivals.process = workload::ArrivalProcess::kConstant;
  const Outcome outcome = Simulate(scenario);
  ASSERT_GT(outcome.functions[0].served(), 50u);
  for (const std::uint32_t us : outcome.functions[0].latencies_us) EXPECT_EQ(us, 43000u);
  EXPECT_EQ(outcome.Paths().requests[0], outcome.functions[0].served());
}

TEST_F(SimulationTest, WhatDoesNotFitComesFromTheHost) {
  node_ = *ReadNodeModel("paper-1gpu", profiles_.reserved);
  Scenario scenario = Make("torpor", "bert-qa", 40, 1);  // 56 GB
  scenario.arrivals.process = workload::ArrivalProcess::kConstant;
  const Outcome outcome = Simulate(scenario);
  const PathCounts paths = outcome.Paths();
  EXPECT_GT(paths.requests[1], 0u);
  EXPECT_EQ(paths.requests[2], 0u);
  EXPECT_EQ(paths.bytes[1], paths.requests[1] * 1'340'000'000);
  const FunctionOutcome& function = outcome.functions[0];
  EXPECT_TRUE(std::all_of(function.latencies_us.begin(), function.latencies_us.end(),
                          [](std::uint32_t us) { return us == 43000 || us >= 144000; }));
}

TEST_F(SimulationTest, AnImageThatIsNotKeptMoves) {
  const auto peers_of = [&](bool keeps_replicas) {
    Scenario scenario = Make("torpor", "bert-qa", 6, 500);  // some share a GPU
    scenario.keeps_replicas = keeps_replicas;
    return Simulate(scenario).Paths().requests[2];
  };
  // Once each GPU has a copy none comes from another any more.
  EXPECT_LT(peers_of(true), peers_of(false));
}

TEST_F(SimulationTest, NativeRefusesWhatDoesNotFit) {
  const Outcome outcome = Simulate(Make("native", "resnet-152", 80, 10));
  EXPECT_EQ(outcome.Ran(), 72u);  // 18 a GPU
  EXPECT_EQ(outcome.Compliant(0.98), 72u);
}

TEST_F(SimulationTest, KeptAliveContainersStartCold) {
  const Outcome outcome = Simulate(Make("keep-alive", "resnet-152", 4, 10));
  for (const FunctionOutcome& function : outcome.functions) {
    ASSERT_GT(function.served(), 0u);
    EXPECT_GE(function.latencies_us.front(), 8'000'000u);
  }
}

TEST_F(SimulationTest, BlocksInASinglePoolTakeTheirTime) {
  node_ = *ReadNodeModel("paper-1gpu", profiles_.reserved);
  // Of several models: blocks of the same one fit.
  Scenario scenario = Make("torpor", "resnet-152", 160, 8);
  scenario.functions = FunctionsInTurn(profiles_, {0, 6, 7}, 160);
  const Outcome torpor = Simulate(scenario);
  scenario.system = *SystemNamed("block");
  EXPECT_GT(Simulate(scenario).Load(0, 0), torpor.Load(0, 0));
}

TEST_F(SimulationTest, TheSameSeedGivesTheSameLog) {
  Scenario scenario = Make("torpor", "resnet-152", 500, 10);
  const Outcome first = Simulate(scenario);
  EXPECT_EQ(first.hash, Simulate(scenario).hash);
  scenario.seed = 2;
  EXPECT_NE(first.hash, Simulate(scenario).hash);
}

TEST_F(SimulationTest, LoadIsTheShareOfTimeThatGpusAreBusy) {
  Scenario scenario = Make("torpor", "resnet-152", 1, 600);
  scenario.arrivals.process = workload::ArrivalProcess::kConstant;
  const Outcome outcome = Simulate(scenario);
  double sum = 0;
  for (std::size_t gpu = 0; gpu < 4; ++gpu) sum += outcome.Load(0, gpu);
  EXPECT_NEAR(sum, 10 * 0.017, 0.001);
}

TEST_F(SimulationTest, FunctionsAreSpreadOverNodes) {
  Scenario scenario = Make("torpor", "resnet-152", 40, 10);
  scenario.nodes = 4;
  const Outcome outcome = Simulate(scenario);
  ASSERT_EQ(outcome.nodes.size(), 4u);
  std::vector<std::size_t> served;
  for (const auto& node : outcome.nodes) {
    std::size_t sum = 0;
    for (const GpuOutcome& gpu : node) sum += gpu.latencies_us.size();
    served.push_back(sum);
  }
  EXPECT_GT(*std::min_element(served.begin(), served.end()), Arrived(outcome) / 5);
}

TEST_F(SimulationTest, OrEachRequestGoesToTheLeastLoadedNode) {
  Scenario scenario = Make("torpor", "resnet-152", 8, 2000);  // too much for one node
  scenario.nodes = 3;
  scenario.routing = Routing::kLeastOutstanding;
  const Outcome outcome = Simulate(scenario);
  EXPECT_GT(outcome.Load(2, 0), 0);
  EXPECT_EQ(outcome.Ran(), 8u);
}

TEST_F(SimulationTest, WithoutFunctionsNothingHappens) {
  const Outcome outcome = Simulate(Make("torpor", "resnet-152", 0, 10));
  EXPECT_EQ(outcome.Ran(), 0u);
}

}  // namespace
}  // namespace torpor::sim
