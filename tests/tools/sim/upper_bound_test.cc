#include "tools/sim/upper_bound.h"

#include <gtest/gtest.h>

#include <chrono>

namespace torpor::sim {
namespace {

class UpperBoundTest : public testing::Test {
 protected:
  Scenario Make(const std::string& model, std::size_t functions, double requests_per_minute) {
    Scenario scenario;
    scenario.profiles = &profiles_;
    scenario.node = &node_;
    scenario.system = *SystemNamed("torpor-plus");
    scenario.functions = FunctionsInTurn(profiles_, {*FindModel(profiles_, model)}, functions);
    scenario.rates = workload::ConstantRates(std::vector<double>(functions, requests_per_minute));
    scenario.arrivals.process = workload::ArrivalProcess::kConstant;
    scenario.length = std::chrono::minutes(12);
    return scenario;
  }

  Profiles profiles_ = PaperProfiles();
  NodeModel node_ = *ReadNodeModel("paper-1gpu", profiles_.reserved);
};

TEST_F(UpperBoundTest, AllComplyWhereThereIsPlenty) {
  EXPECT_DOUBLE_EQ(CompliantBound(Make("resnet-152", 20, 10)), 20);
}

TEST_F(UpperBoundTest, WithoutFunctionsNoneComply) {
  EXPECT_DOUBLE_EQ(CompliantBound(Make("resnet-152", 0, 10)), 0);
}

TEST_F(UpperBoundTest, TheGpusTimeBounds) {
  // 18.35 ms a request: a minute has some 3270 of them, of 98% of 100 a function.
  profiles_.reserved = 0;
  const double bound = CompliantBound(Make("resnet-152", 90, 100));
  EXPECT_GT(bound, 60 / 0.01835 / 100);
  EXPECT_LT(bound, 1.15 * 60 / 0.01835 / 100);
}

TEST_F(UpperBoundTest, MemoryAndLinksBoundWhatTheGpusTimeWouldAllow) {
  // 21 of them lie in the memory; the others are fetched, some 9 a second: 535 a minute.
  const double bound = CompliantBound(Make("bert-qa", 200, 6));
  EXPECT_LT(bound, 140);
  EXPECT_GT(bound, 21);
}

TEST_F(UpperBoundTest, NoSystemExceedsIt) {
  Scenario scenario = Make("resnet-152", 300, 12);
  scenario.arrivals.process = workload::ArrivalProcess::kPoisson;
  const double bound = CompliantBound(scenario);
  for (const char* const system : {"torpor", "torpor-plus", "fifo"}) {
    scenario.system = *SystemNamed(system);
    const auto compliant = static_cast<double>(Simulate(scenario).Compliant(0.98));
    EXPECT_LE(compliant, bound) << system;
  }
}

}  // namespace
}  // namespace torpor::sim
