// Models that come to the GPU while their function already works, with every setting of swaps.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/e2e/address_mode.h"
#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::e2e {
namespace {

// Slow enough that a function's first kernels are launched long before its last layer is there: 48
// MiB take 50 ms. Two functions do not fit.
constexpr const char* kSlowLink = R"(version: v1
gpus:
  - memory: 96MiB
    pcie_gbps: 1
)";

constexpr std::uint64_t kLayers = 24;
constexpr std::uint64_t kElements = 1u << 19;

std::string Sum(std::uint64_t sum) { return "{\"sum\":" + std::to_string(sum) + "}\n"; }
std::string SumOfAll(std::uint64_t added) {
  return Sum(kElements * (kLayers * (kLayers - 1) / 2 + kLayers * added));
}
std::string SumOf(std::uint64_t layer, std::uint64_t added) {
  return Sum(kElements * (layer + added));
}

// Two functions, of which one at a time has room.
class TwoForOneGpu : public testing::Test {
 protected:
  explicit TwoForOneGpu(const std::string& settings = "", const std::string& function_setting = "")
      : node_(std::make_unique<EmulatedNode>(kSlowLink, std::vector<std::string>{"a", "b"},
                                             settings, /*gpus=*/1, function_setting)) {}
  void SetUp() override {
    node_->Start();
    for (const char* name : {"a", "b"}) {
      if (!HasFatalFailure()) {
        node_->StartFunction(name, {std::string(DRIVEN_DIR) + "/layers_server"});
      }
    }
  }
  void TearDown() override {
    if (HasFailure() && node_ != nullptr) std::fputs(node_->Logs().c_str(), stderr);
  }

  // The answer of a request that finds its function evicted.
  std::string Ask(const std::string& what, const std::string& body) {
    EXPECT_EQ(node_->PostOne("/function/b/run", R"({"stride":[1]})").body, SumOfAll(0));
    const Reply reply = node_->PostOne("/function/a/" + what, body);
    EXPECT_EQ(reply.headers.at("x-torpor-swap"), "host");
    return reply.body;
  }
  std::string Run(int stride) {
    return Ask("run", "{\"stride\":[" + std::to_string(stride) + "]}");
  }

  const std::unique_ptr<EmulatedNode> node_;
};

class Swapping : public TwoForOneGpu, public testing::WithParamInterface<const char*> {
 protected:
  Swapping() : TwoForOneGpu(GetParam()) {}
};

TEST_P(Swapping, AnswersAreRightInWhateverOrderLayersAreUsed) {
  // Long enough in one order that it is learned; then in others.
  for (const int stride : {5, 5, 5, 5, 5, 7, 23, 1, 1, 1, 1, 23}) {
    EXPECT_EQ(Run(stride), SumOfAll(0)) << stride;
  }
}

TEST_P(Swapping, WhatAKernelFindsByAPointerInMemoryIsThere) {
  if (IsTranslating()) GTEST_SKIP() << kPointersInMemory;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Run(1), SumOfAll(0));
  for (const int layer : {23, 0, 12, 23}) {
    EXPECT_EQ(Ask("follow", "{\"layer\":[" + std::to_string(layer) + "]}"),
              SumOf(static_cast<std::uint64_t>(layer), 0));
  }
}

TEST_P(Swapping, WhatKernelsChangeWhileItComesIsKept) {
  for (std::uint64_t round = 1; round <= 4; ++round) {
    EXPECT_EQ(Ask("add", R"({"value":[1]})"), SumOfAll(round));
  }
  EXPECT_EQ(Run(23), SumOfAll(4));
}

TEST_P(Swapping, OfSeveralUploadsTheLastIsKept) {
  for (std::uint64_t value = 1; value <= 2; ++value) {
    EXPECT_EQ(Ask("upload", "{\"value\":[" + std::to_string(value) + "]}"), SumOf(0, value));
    EXPECT_EQ(Ask("first", "{}"), SumOf(0, value));
  }
}

class StatelessFunctions : public TwoForOneGpu {
 protected:
  StatelessFunctions() : TwoForOneGpu("", "stateless: true") {}
};

TEST_F(StatelessFunctions, KeepWhatTheirProgramsSetUp) {
  EXPECT_EQ(Run(1), SumOfAll(0));
  EXPECT_EQ(Ask("add", R"({"value":[1]})"), SumOfAll(1));
  EXPECT_EQ(Run(1), SumOfAll(0)) << "what a request changed went with its eviction";
}

TEST_F(StatelessFunctions, KeepTheLastUploadOfARequest) {
  EXPECT_EQ(Run(1), SumOfAll(0));
  EXPECT_EQ(Ask("upload", R"({"value":[7]})"), SumOf(0, 7));
  EXPECT_EQ(Ask("first", "{}"), SumOf(0, 7));
}

class LargeChunks : public TwoForOneGpu {
 protected:
  LargeChunks() : TwoForOneGpu("chunk_bytes: 8MiB\n") {}
  void SetUp() override {
    if (IsTranslating()) GTEST_SKIP() << "each layer would take a chunk of its own";
    TwoForOneGpu::SetUp();
  }
};

TEST_F(LargeChunks, HoldSeveralLayersEach) {
  for (std::uint64_t round = 1; round <= 3; ++round) {
    EXPECT_EQ(Ask("add", R"({"value":[1]})"), SumOfAll(round));
  }
  EXPECT_EQ(Run(23), SumOfAll(3));
}

class IdleGpus : public TwoForOneGpu {
 protected:
  IdleGpus() : TwoForOneGpu("idle_write_back: 20ms\n") {}
  double WrittenBack(const std::string& reason) const {
    return ValueOf(node_->Metrics(), "torpor_write_back_bytes_total",
                   {"reason=\"" + reason + "\""});
  }
};

TEST_F(IdleGpus, LeaveNothingForAnEvictionToWriteBack) {
  // Its first request is written back when it ends, whatever the GPU does.
  ASSERT_EQ(Run(1), SumOfAll(0));
  const double before = WrittenBack("idle");
  const double evicted = WrittenBack("eviction");
  ASSERT_EQ(node_->PostOne("/function/a/add", R"({"value":[1]})").body, SumOfAll(1));
  // The layers, and the few bytes in which they are added up.
  const auto is_written = [&] {
    return WrittenBack("idle") - before > static_cast<double>(kLayers * kElements * 4);
  };
  ASSERT_EQ(Await("the idle GPU has written back what changed", is_written), absl::OkStatus());
  EXPECT_EQ(Run(1), SumOfAll(1));
  EXPECT_EQ(WrittenBack("eviction"), evicted);
}

INSTANTIATE_TEST_SUITE_P(Settings, Swapping,
                         testing::Values("swap_group_bytes: auto\n", "swap_pipeline: none\n",
                                         "swap_pipeline: parameter\n", "swap_group_bytes: 8MiB\n",
                                         "swap_wait: range\n",
                                         "swap_pinned: false\nswap_pipeline: none\n",
                                         "swap_pinned: false\n"),
                         [](const auto& info) { return "Setting" + std::to_string(info.index); });

}  // namespace
}  // namespace torpor::e2e
