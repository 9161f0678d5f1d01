#include "server/executor/runtime/session_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "proto/cuda_api/cublas_commands.h"
#include "server/executor/runtime/graph_set.h"
#include "tests/server/executor/session/batch_test.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr std::uint64_t kGraph = 20;
constexpr std::uint64_t kKernel = 2;

// A command of the fake's kernel, which notes `value`.
wire::GraphCommand Command(std::uint64_t value, std::uint64_t kernel = kKernel) {
  wire::LaunchKernel launch;
  launch.kernel = kernel;
  launch.grid = launch.block = {1, 1, 1};
  launch.parameters = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
  return {wire::LaunchKernel::kCallId, wire::Encoded(launch)};
}

wire::GraphNode Node(std::uint64_t value, std::vector<std::uint32_t> dependencies = {}) {
  return {{Command(value)}, std::move(dependencies)};
}

class GraphTest : public BatchTest {
 protected:
  void SetUp() override {
    events_before_ = s_.cuda.live_events();
    streams_before_ = s_.cuda.live_streams();
    ASSERT_NO_FATAL_FAILURE(LoadKernel());
    Run(BatchBuilder()
            .Add(wire::StreamCreate{10, cudaStreamNonBlocking, 0})
            .Add(wire::StreamCreate{11, cudaStreamNonBlocking, 0})
            .Add(wire::GraphCreate{kGraph}));
  }
  void Run(const BatchBuilder& batch) { ASSERT_TRUE(s_.Run(batch.Frame(kLease)).ok()); }
  std::size_t PositionOf(std::uint64_t value) const {
    const auto& launches = s_.cuda.launches();
    return static_cast<std::size_t>(std::find(launches.begin(), launches.end(), value) -
                                    launches.begin());
  }

  std::size_t events_before_ = 0;
  std::size_t streams_before_ = 0;
};

TEST_F(GraphTest, EveryLaunchRunsEveryNode) {
  Run(BatchBuilder()
          .Add(wire::GraphAddNodes{kGraph, 0, {Node(1), Node(2, {0})}})
          .Add(wire::GraphAddNodes{kGraph, 2, {Node(3, {1})}})
          .Add(wire::GraphLaunch{kGraph, 10})
          .Add(wire::GraphLaunch{kGraph, 0}));
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_TRUE(s_.memory->image().dirty());
}

TEST_F(GraphTest, EveryNodeWaitsForWhatItDependsOn) {
  s_.cuda.HoldStreams();
  const std::vector<wire::GraphNode> nodes = {Node(0),      Node(1, {0}),      Node(2, {0}),
                                              Node(3, {2}), Node(4, {3, 1}),   Node(5, {1}),
                                              Node(6),      Node(7, {5, 6, 4})};
  Run(BatchBuilder().Add(wire::GraphAddNodes{kGraph, 0, nodes}).Add(wire::GraphLaunch{kGraph, 10}));
  s_.cuda.Release();
  EXPECT_THAT(s_.cuda.launches(), UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (const std::uint32_t earlier : nodes[node].dependencies) {
      EXPECT_LT(PositionOf(earlier), PositionOf(node)) << earlier << " and " << node;
    }
  }
}

TEST_F(GraphTest, OnlyBranchesHaveLanesOfTheirOwn) {
  SessionGraph chain(*s_.device);
  ASSERT_TRUE(chain.Add({Node(1), Node(2, {0}), Node(3, {1})}).ok());
  EXPECT_EQ(chain.lanes(), 1u);
  // A lane whose work is joined serves the next branch.
  SessionGraph diamonds(*s_.device);
  ASSERT_TRUE(diamonds.Add({Node(0)}).ok());
  for (std::uint32_t last = 0; last < 30; last += 3) {
    ASSERT_TRUE(
        diamonds.Add({Node(1, {last}), Node(2, {last}), Node(3, {last + 1, last + 2})}).ok());
  }
  EXPECT_EQ(diamonds.lanes(), 2u);
}

TEST_F(GraphTest, AGraphKeepsItsPlaceInItsStream) {
  s_.cuda.HoldStreams();
  wire::LaunchKernel plain;
  plain.kernel = kKernel;
  plain.stream = 10;
  plain.grid = plain.block = {1, 1, 1};
  const std::uint64_t before = 7;
  const std::uint64_t after = 8;
  BatchBuilder batch;
  batch.Add(wire::GraphAddNodes{kGraph, 0, {Node(1), Node(2), Node(3)}});
  plain.parameters = {reinterpret_cast<const std::uint8_t*>(&before), sizeof before};
  batch.Add(plain).Add(wire::GraphLaunch{kGraph, 10});
  plain.parameters = {reinterpret_cast<const std::uint8_t*>(&after), sizeof after};
  batch.Add(plain);
  Run(batch);
  s_.cuda.Release();
  EXPECT_EQ(PositionOf(7), 0u);
  EXPECT_EQ(PositionOf(8), 4u);
}

TEST_F(GraphTest, OneLaunchIsUnderWayAtATime) {
  s_.cuda.HoldStreams();
  Run(BatchBuilder()
          .Add(wire::GraphAddNodes{kGraph, 0, {Node(1), Node(2, {0})}})
          .Add(wire::GraphLaunch{kGraph, 10})
          .Add(wire::GraphSetNode{kGraph, 0, {Command(5)}})
          .Add(wire::GraphLaunch{kGraph, 11}));
  s_.cuda.Release();
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(1, 2, 5, 2));
}

TEST_F(GraphTest, MoreBranchesThanLanesStillRun) {
  s_.cuda.HoldStreams();
  wire::GraphAddNodes wide{kGraph, 0, {Node(1000)}};
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 1; i <= 3 * kMaxGraphLanes; ++i) {
    wide.nodes.push_back(Node(i, {0}));
    all.push_back(i);
  }
  wide.nodes.push_back(Node(2000, all));
  Run(BatchBuilder().Add(wide).Add(wire::GraphLaunch{kGraph, 10}));
  s_.cuda.Release();
  EXPECT_EQ(s_.cuda.launches().size(), wide.nodes.size());
  EXPECT_EQ(PositionOf(1000), 0u);
  EXPECT_EQ(PositionOf(2000), wide.nodes.size() - 1);
}

TEST_F(GraphTest, NodesCanBeChangedAndLeftOut) {
  Run(BatchBuilder()
          .Add(wire::GraphAddNodes{kGraph, 0, {Node(1), Node(2, {0})}})
          .Add(wire::GraphSetNode{kGraph, 0, {}})
          .Add(wire::GraphSetNode{kGraph, 1, {Command(8), Command(9)}})
          .Add(wire::GraphLaunch{kGraph, 10}));
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(8, 9));
}

TEST_F(GraphTest, CommandsAreCheckedAsInABatch) {
  Run(BatchBuilder().Add(
      wire::GraphAddNodes{kGraph, 0, {Node(1), {{Command(2, 77)}, {0}}, Node(3, {1})}}));
  EXPECT_EQ(ErrorOf(wire::GraphLaunch{kGraph, 10}), cudaErrorInvalidDeviceFunction);
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(1));
  const wire::Memset foreign{s_.identity.device_base - 1, 0, 0, 1, 16};
  Run(BatchBuilder().Add(
      wire::GraphSetNode{kGraph, 1, {{wire::Memset::kCallId, wire::Encoded(foreign)}}}));
  EXPECT_EQ(ErrorOf(wire::GraphLaunch{kGraph, 10}), cudaErrorInvalidValue);
  Run(BatchBuilder().Add(wire::GraphSetNode{kGraph, 1, {{wire::Memset::kCallId, {1, 2, 3}}}}));
  EXPECT_EQ(ErrorOf(wire::GraphLaunch{kGraph, 10}), cudaErrorInvalidValue);
}

TEST_F(GraphTest, WhatIsNoGraphIsRefused) {
  EXPECT_EQ(ErrorOf(wire::GraphCreate{kGraph}), cudaErrorInvalidValue);
  EXPECT_EQ(ErrorOf(wire::GraphLaunch{kGraph + 1, 10}), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(ErrorOf(wire::GraphLaunch{kGraph, 99}), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(ErrorOf(wire::GraphDestroy{kGraph + 1}), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(ErrorOf(wire::GraphAddNodes{kGraph, 1, {Node(1)}}), cudaErrorInvalidValue)
      << "not behind the last";
  EXPECT_EQ(ErrorOf(wire::GraphAddNodes{kGraph, 0, {Node(1, {0})}}), cudaErrorInvalidValue)
      << "depends on itself";
  EXPECT_EQ(ErrorOf(wire::GraphSetNode{kGraph, 0, {}}), cudaErrorInvalidValue);
  for (const std::uint32_t call_id :
       {wire::GraphLaunch::kCallId, wire::GraphDestroy::kCallId, wire::StreamDestroy::kCallId,
        wire::MemcpyDtoH::kCallId, wire::CublasCreate::kCallId, wire::CublasDestroy::kCallId,
        wire::CublasSetStream::kCallId, wire::CublasSdotToHost::kCallId, 0u, 9999u}) {
    EXPECT_EQ(ErrorOf(wire::GraphAddNodes{kGraph, 0, {{{{call_id, {}}}, {}}}}),
              cudaErrorInvalidValue)
        << call_id;
  }
  EXPECT_EQ(ErrorOf(wire::GraphDestroy{kGraph}), cudaSuccess);
  EXPECT_TRUE(s_.cuda.launches().empty());
}

TEST_F(GraphTest, AFailedLaunchLeavesTheStreamsAsTheyWere) {
  s_.cuda.HoldStreams();
  const std::uint64_t after = 8;
  wire::LaunchKernel plain = Launch(after);
  plain.stream = 11;
  Run(BatchBuilder()
          .Add(wire::GraphAddNodes{kGraph, 0, {Node(1), {{Command(2, 77)}, {0}}}})
          .Add(wire::GraphLaunch{kGraph, 10})
          .Add(plain));
  s_.cuda.Release();  // stream 11 was made last: it comes first
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(8, 1));
}

TEST_F(GraphTest, TheLegacyStreamWaitsForSideLanes) {
  s_.cuda.HoldStreams();
  const std::uint64_t before = 7;
  const std::uint64_t after = 9;
  Run(BatchBuilder()
          .Add(wire::StreamCreate{12, cudaStreamDefault, 0})
          .Add(wire::GraphAddNodes{kGraph, 0, {Node(1), Node(2), Node(3)}})
          .Add(Launch(before))  // makes the legacy stream before the lanes
          .Add(wire::GraphLaunch{kGraph, 12})
          .Add(Launch(after)));
  s_.cuda.Release();
  EXPECT_EQ(PositionOf(7), 0u);
  EXPECT_EQ(PositionOf(9), 4u);
}

TEST_F(GraphTest, AnotherLibrarysFailureIsToldAsCuda) {
  wire::CublasSscal scale;
  scale.handle = 99;
  scale.n = 1;
  scale.incx = 1;
  scale.x = base();
  Run(BatchBuilder().Add(wire::GraphAddNodes{
      kGraph, 0, {{{{wire::CublasSscal::kCallId, wire::Encoded(scale)}}, {}}}}));
  EXPECT_EQ(ErrorOf(wire::GraphLaunch{kGraph, 10}), cudaErrorUnknown);
}

TEST_F(GraphTest, AnEarlierStreamsGraphsLeaveNothing) {
  EXPECT_GT(s_.cuda.live_streams(), streams_before_);
  Run(BatchBuilder()
          .Add(wire::GraphAddNodes{kGraph, 0, {Node(1), Node(2), Node(3, {0, 1})}})
          .Add(wire::GraphLaunch{kGraph, 10}));
  EXPECT_GT(s_.cuda.live_events(), events_before_);
  ASSERT_TRUE(s_.session->ResetObjects().ok());
  s_.device->discarded().DestroyAll();
  EXPECT_EQ(s_.cuda.live_events(), events_before_);
  EXPECT_EQ(s_.cuda.live_streams(), streams_before_);
}

TEST_F(GraphTest, WhatASessionsGraphsTakeIsBounded) {
  StreamSet streams(*s_.device);
  GraphSet graphs(*s_.device, streams, s_.memory->image(),
                  [](const auto&) { return cuda_api::CallStatus(); });
  ASSERT_TRUE(graphs.Create(1).ok());
  ASSERT_TRUE(graphs.Create(2).ok());
  constexpr std::size_t kMaxNodes = 1u << 20;
  wire::GraphAddNodes nodes{1, 0, std::vector<wire::GraphNode>(kMaxNodes)};
  ASSERT_TRUE(graphs.AddNodes(nodes).ok()) << "empty ones are little";
  nodes = {2, 0, std::vector<wire::GraphNode>(1)};
  EXPECT_TRUE(absl::IsResourceExhausted(graphs.AddNodes(nodes))) << "of all graphs together";
  ASSERT_TRUE(graphs.Destroy(1).ok());
  EXPECT_TRUE(graphs.AddNodes(nodes).ok());

  // Whose fields take nothing, but they do.
  wire::GraphSetNode commands{2, 0, {}};
  commands.commands.resize(256 * kMiB / sizeof(wire::GraphCommand),
                           {wire::LaunchKernel::kCallId, {}});
  EXPECT_TRUE(absl::IsResourceExhausted(graphs.SetNode(commands)));
  commands.commands.resize(commands.commands.size() / 2 + 1);
  ASSERT_TRUE(graphs.SetNode(commands).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(graphs.SetNode(commands)));
  ASSERT_TRUE(graphs.SetNode({2, 0, {}}).ok());
  EXPECT_TRUE(graphs.SetNode(commands).ok());
}

}  // namespace
}  // namespace torpor::executor
