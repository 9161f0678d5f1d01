// Graphs of a session that become graphs of the driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/executor/runtime/graph_set.h"
#include "tests/server/executor/session/batch_test.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kLoopGraph = 20;
constexpr std::uint64_t kLoopKernel = 2;

// A command of the fake's kernel, which notes `value`.
wire::GraphCommand LaunchOf(std::uint64_t value) {
  wire::LaunchKernel launch;
  launch.kernel = kLoopKernel;
  launch.grid = launch.block = {1, 1, 1};
  launch.parameters = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
  return {wire::LaunchKernel::kCallId, wire::Encoded(launch)};
}

class DriverGraphsTest : public BatchTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(LoadKernel());
    const std::vector<wire::GraphNode> nodes = {
        {{LaunchOf(1)}, {}}, {{LaunchOf(2)}, {0}}, {{LaunchOf(3)}, {0}}, {{LaunchOf(4)}, {1, 2}}};
    Run(BatchBuilder()
            .Add(wire::StreamCreate{10, cudaStreamNonBlocking, 0})
            .Add(wire::GraphCreate{kLoopGraph})
            .Add(wire::GraphAddNodes{kLoopGraph, 0, nodes}));
  }
  void Run(const BatchBuilder& batch) { ASSERT_TRUE(s_.Run(batch.Frame(kLease)).ok()); }
  void Launch(int times) {
    for (int i = 0; i < times; ++i) Run(BatchBuilder().Add(wire::GraphLaunch{kLoopGraph, 10}));
  }
  std::size_t launched() const { return s_.cuda.graphs_launched(); }
};

TEST_F(DriverGraphsTest, AGraphThatComesAgainIsOneLaunch) {
  Launch(4);
  EXPECT_EQ(launched(), 3U);
  EXPECT_EQ(s_.cuda.live_graph_execs(), 1U);
  EXPECT_EQ(s_.cuda.launches().size(), 16U);
  EXPECT_EQ(s_.cuda.launches().back(), 4U);
  EXPECT_TRUE(s_.memory->image().dirty());
  Run(BatchBuilder().Add(wire::GraphDestroy{kLoopGraph}));
  s_.device->discarded().DestroyAll();
  EXPECT_EQ(s_.cuda.live_graph_execs(), 0U);
}

TEST_F(DriverGraphsTest, EveryLaunchMayHaveChangedMemory) {
  Launch(2);
  s_.memory->image().ForgetChanges();
  Launch(1);
  EXPECT_EQ(launched(), 2U);
  EXPECT_TRUE(s_.memory->image().dirty());
}

TEST_F(DriverGraphsTest, ARecordingSeesAGraphsCommandsOnce) {
  Launch(2);
  EXPECT_EQ(launched(), 1U);
  ImageTouches& touches = s_.memory->image().touches();
  touches.Begin(/*record=*/true);
  Launch(3);
  EXPECT_EQ(launched(), 3U) << "the first launch is node by node, and the graph is still there";
  touches.Begin(/*record=*/true);
  Launch(1);
  EXPECT_EQ(launched(), 3U) << "another recording";
  touches.End();
  Launch(1);
  EXPECT_EQ(launched(), 4U);
}

TEST_F(DriverGraphsTest, AChangedNodeIsLaunchedAsItIs) {
  Launch(2);
  Run(BatchBuilder().Add(wire::GraphSetNode{kLoopGraph, 3, {LaunchOf(5)}}));
  Launch(1);
  EXPECT_EQ(launched(), 1U);
  EXPECT_EQ(s_.cuda.launches().back(), 5U);
  Launch(1);
  EXPECT_EQ(launched(), 2U);
  EXPECT_EQ(s_.cuda.launches().back(), 5U);
  s_.device->discarded().DestroyAll();
  EXPECT_EQ(s_.cuda.live_graph_execs(), 1U);
}

TEST_F(DriverGraphsTest, ChangedKernelsAreCapturedAgain) {
  Launch(3);
  EXPECT_EQ(launched(), 2U);
  Run(BatchBuilder().Add(
      wire::FuncSetAttribute{kLoopKernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024}));
  Launch(1);
  EXPECT_EQ(launched(), 2U);
  Launch(1);
  EXPECT_EQ(launched(), 3U);
}

TEST_F(DriverGraphsTest, ThePlainCallsOfALoopChangeNothing) {
  Launch(2);
  Run(BatchBuilder().Add(wire::EventCreate{5, 0}).Add(wire::EventRecord{5, 10, 0, 0, 0}));
  Launch(1);
  EXPECT_EQ(launched(), 2U);
}

TEST_F(DriverGraphsTest, WhatTheDriverRefusesRunsNodeByNode) {
  s_.cuda.RefuseCaptures(true);
  Launch(3);
  EXPECT_EQ(launched(), 0U);
  EXPECT_EQ(s_.cuda.live_graph_execs(), 0U);
  EXPECT_EQ(s_.cuda.launches().size(), 12U);
}

TEST_F(DriverGraphsTest, RangesAreCheckedAgainWhenMemoryIsFreed) {
  wire::Memset fill;
  fill.dst = s_.memory->image().base();
  fill.element_bytes = 1;
  fill.count = 16;
  Run(BatchBuilder().Add(
      wire::GraphAddNodes{kLoopGraph, 4, {{{{wire::Memset::kCallId, wire::Encoded(fill)}}, {3}}}}));
  Launch(3);
  EXPECT_EQ(launched(), 2U);
  memory::ExtentSet left;
  left.Add({0, 2 * kMiB});
  ASSERT_TRUE(s_.memory->image().Shrink({2 * kMiB, 4 * kMiB}, left).ok());
  Launch(1);
  EXPECT_EQ(launched(), 2U);
}

// A copy from pinned memory is not in the driver's power at each launch.
TEST_F(DriverGraphsTest, UploadsStayCommands) {
  wire::MemcpyHtoD upload;
  upload.dst = s_.memory->image().base();
  upload.payload = wire::Payload::kInline;
  const std::vector<std::uint8_t> bytes(16);
  upload.bytes = bytes.size();
  upload.data = bytes;
  Run(BatchBuilder().Add(wire::GraphAddNodes{
      kLoopGraph, 4, {{{{wire::MemcpyHtoD::kCallId, wire::Encoded(upload)}}, {3}}}}));
  Launch(3);
  EXPECT_EQ(launched(), 0U);
}

TEST_F(DriverGraphsTest, AFailureIsTheCommandsOwn) {
  Launch(2);
  Run(BatchBuilder().Add(wire::ModuleUnload{1}));
  Launch(3);
  EXPECT_EQ(launched(), 1U);
  EXPECT_EQ(s_.cuda.launches().size(), 8U);
}

}  // namespace
}  // namespace torpor::executor
