// Ten functions of PyTorch, each a process of the example server, on two GPUs that have no room for
// all of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/e2e/child_process.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"
#include "tests/pytorch/pytorch_program.h"

namespace torpor::e2e {
namespace {

constexpr int kFunctions = 10;
constexpr auto kLoadPatience = std::chrono::minutes(5);

std::vector<std::string> Names() {
  std::vector<std::string> names;
  names.reserve(kFunctions);
  for (int i = 0; i < kFunctions; ++i) names.push_back("embedding-" + std::to_string(i));
  return names;
}

class EmbeddingFleet : public testing::Test {
 protected:
  void SetUp() override {
    const std::string folder = node_.folder().path();
    RunOnCpu("examples/pytorch/embedding_reference.py",
             {"--write-expected", folder + "/expected.jsonl"}, folder);
    ASSERT_FALSE(HasFailure());
    ASSERT_NO_FATAL_FAILURE(node_.Start());
    for (const std::string& name : Names()) {
      ASSERT_NO_FATAL_FAILURE(
          node_.StartFunction(name, PytorchProgram("examples/pytorch/embedding_server.py")));
    }
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  std::string WriteWorkload() const {
    std::string yaml = fmt::format(
        "version: v1\narrivals: constant\nduration_s: 40\nwarm_up_s: 0\ntimeout_s: 120\n"
        "target: {}\nfunctions:\n",
        node_.http_address());
    for (const std::string& name : Names()) {
      yaml += fmt::format(
          "  - {{name: {0}, path: /function/{0}/embed, rate_per_s: 0.15, objective_ms: 5000, "
          "expected: expected.jsonl}}\n",
          name);
    }
    return node_.folder().Write("workload.yaml", yaml);
  }

  // The report; torpor-loadgen fails where a request does, or an answer is wrong.
  nlohmann::json Load() const {
    const std::string report = node_.folder().path() + "/report.json";
    ChildProcess loadgen(
        {std::string(TORPOR_BIN_DIR) + "/torpor-loadgen", WriteWorkload(), "--json", report},
        {node_.folder().path(), {}});
    EXPECT_EQ(loadgen.Wait(kLoadPatience), 0) << loadgen.Stderr();
    std::fputs(loadgen.Stdout().c_str(), stdout);
    std::ifstream file(report);
    return nlohmann::json::parse(file, nullptr, false);
  }

  double SwappedIn() const {
    return ValueOf(node_.Metrics(), "torpor_swap_bytes_total", {R"(direction="in")"});
  }

  // Each GPU has room for three of the models.
  EmulatedNode node_{"version: v1\ngpus: [" + TuringGpus("400MiB", 2) + "]\n", Names(),
                     "driver_reserve: 64MiB\nqueue_timeout: 120s\n"};
};

TEST_F(EmbeddingFleet, AnswersAsTheCpuDoesWhileModelsTakeTurnsOnTheGpus) {
  const double swapped_in = SwappedIn();
  const nlohmann::json report = Load();
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report.at("errors"), 0);
  EXPECT_EQ(report.at("wrong_answers"), 0);
  for (const auto& function : report.at("functions")) {
    EXPECT_GT(function.at("requests"), 0) << function.at("name");
  }
  const int swaps = report.at("swaps_pcie").get<int>() + report.at("swaps_nvlink").get<int>();
  EXPECT_GT(swaps, 0);
  EXPECT_GT(SwappedIn(), swapped_in);
  EXPECT_GT(ValueOf(node_.Metrics(), "torpor_evictions_total", {R"(reason="memory_full")"}), 0.0);
}

}  // namespace
}  // namespace torpor::e2e
