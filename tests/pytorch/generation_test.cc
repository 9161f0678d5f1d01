// A decoder whose KV cache lies on the GPU, and that is evicted or moved to the other GPU between
// any two of its tokens.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"
#include "tests/pytorch/moved_function.h"
#include "tests/pytorch/pytorch_program.h"

namespace torpor::e2e {
namespace {

constexpr std::size_t kTokens = 64;

class Generation : public testing::Test {
 protected:
  void SetUp() override {
    const std::string printed = RunOnCpu("tests/pytorch/decoder.py", {}, node_.folder().path());
    expected_ = nlohmann::json::parse(printed, nullptr, false);
    ASSERT_EQ(expected_.size(), kTokens) << printed;
    ASSERT_NO_FATAL_FAILURE(node_.Start());
    ASSERT_NO_FATAL_FAILURE(
        node_.StartFunction("decoder", PytorchProgram("tests/pytorch/decoder_server.py")));
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  int Ask(const std::string& what) const { return decoder_.Ask(what).value("token", -1); }
  double Evictions(const std::string& reason) const {
    return ValueOf(node_.Metrics(), "torpor_evictions_total", {"reason=\"" + reason + "\""});
  }
  double BytesIn(const std::string& path) const {
    return ValueOf(node_.Metrics(), "torpor_swap_bytes_total",
                   {R"(direction="in")", "path=\"" + path + "\""});
  }

  EmulatedNode node_{"version: v1\ngpus: [" + TuringGpus("512MiB", 2) +
                         "]\nnvlinks: {gbps_per_link: 16, pairs: [{gpus: [0, 1]}]}\n",
                     {"decoder"},
                     "driver_reserve: 64MiB\n"};
  const MovedFunction decoder_{node_, "decoder"};
  nlohmann::json expected_;
};

TEST_F(Generation, EvictedAndMovedBetweenTokensItGeneratesWhatTheCpuDoes) {
  std::vector<int> tokens = {Ask("start")};
  const double requested = Evictions("requested");
  const double moved = Evictions("move");
  const double from_host = BytesIn("pcie");
  const double from_peer = BytesIn("nvlink");
  for (std::size_t i = 1; i < kTokens; ++i) {
    const int other = 1 - decoder_.Gpu();
    if (i % 2 == 1) decoder_.Evict();
    decoder_.LoadTo(other);
    tokens.push_back(Ask("next"));
    EXPECT_EQ(decoder_.Gpu(), other);
  }
  EXPECT_EQ(nlohmann::json(tokens), expected_);
  EXPECT_EQ(Evictions("requested") - requested, 32.0);
  EXPECT_EQ(Evictions("move") - moved, 31.0);
  EXPECT_GT(BytesIn("pcie"), from_host);
  EXPECT_GT(BytesIn("nvlink"), from_peer);
}

}  // namespace
}  // namespace torpor::e2e
