// A torch.cuda.CUDAGraph that is captured on one GPU and replayed wherever its function is then.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/e2e/emulated_node.h"
#include "tests/pytorch/moved_function.h"
#include "tests/pytorch/pytorch_program.h"

namespace torpor::e2e {
namespace {

constexpr std::size_t kSteps = 8;
constexpr std::size_t kShown = 16;
constexpr double kTolerance = 1e-4;

class GraphMoves : public testing::Test {
 protected:
  void SetUp() override {
    const std::string printed = RunOnCpu("tests/pytorch/recurrence.py", {}, node_.folder().path());
    expected_ = nlohmann::json::parse(printed, nullptr, false);
    ASSERT_EQ(expected_.size(), kSteps) << printed;
    ASSERT_NO_FATAL_FAILURE(node_.Start());
    ASSERT_NO_FATAL_FAILURE(
        node_.StartFunction("recurrence", PytorchProgram("tests/pytorch/recurrence_server.py")));
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  void ExpectStep(std::size_t step, const nlohmann::json& answer) const {
    const auto values = answer.value("values", std::vector<double>());
    ASSERT_EQ(values.size(), kShown) << answer;
    for (std::size_t i = 0; i < kShown; ++i) {
      EXPECT_NEAR(values[i], expected_[step][i].get<double>(), kTolerance) << "step " << step;
    }
  }

  EmulatedNode node_{"version: v1\ngpus: [" + TuringGpus("512MiB", 2) + "]\n",
                     {"recurrence"},
                     "driver_reserve: 64MiB\n"};
  const MovedFunction function_{node_, "recurrence"};
  nlohmann::json expected_;
};

TEST_F(GraphMoves, ReplayedOnTheOtherGpuItComputesWhatTheCpuDoes) {
  ExpectStep(0, function_.Ask("start"));
  for (std::size_t step = 1; step < kSteps; ++step) {
    const int other = 1 - function_.Gpu();
    if (step % 2 == 1) function_.Evict();
    function_.LoadTo(other);
    ExpectStep(step, function_.Ask("next"));
    EXPECT_EQ(function_.Gpu(), other);
  }
}

}  // namespace
}  // namespace torpor::e2e
