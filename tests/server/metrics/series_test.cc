#include "server/metrics/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace torpor::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SeriesTest : public testing::Test {
 protected:
  std::string Text() const { return prometheus::TextSerializer().Serialize(registry_.Collect()); }

  prometheus::Registry registry_;
};

TEST_F(SeriesTest, ANodesReasonsAreThereFromTheStart) {
  NodeSeries series(registry_);
  EXPECT_THAT(Text(), HasSubstr("torpor_evictions_total{reason=\"memory_full\"} 0"));
  series.CountEviction(EvictionReason::kMemoryFull);
  series.CountWriteBack(WriteBackReason::kIdle, 100);
  series.CountLostExecutor(GpuIndex{2});
  NodeSnapshot node;
  node.sessions = 5;
  node.host_memory = {.budget = 9, .used = 8, .refusals = 6};
  node.addresses = {
      .mode = "translate", .fallback = "refused", .base = 1, .bytes = 3, .free_bytes = 2};
  series.Render(node);
  EXPECT_THAT(Text(), HasSubstr("torpor_evictions_total{reason=\"memory_full\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("torpor_write_back_bytes_total{reason=\"idle\"} 100"));
  EXPECT_THAT(Text(), HasSubstr("torpor_executors_lost_total{gpu=\"2\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("torpor_sessions 5"));
  EXPECT_THAT(Text(), HasSubstr("torpor_host_memory_bytes 9"));
  EXPECT_THAT(Text(), HasSubstr("torpor_host_memory_used_bytes 8"));
  EXPECT_THAT(Text(), HasSubstr("torpor_host_memory_refusals_total 6"));
  EXPECT_THAT(Text(), HasSubstr("torpor_address_mode{mode=\"translate\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("torpor_address_fallback 1"));
  EXPECT_THAT(Text(), HasSubstr("torpor_free_address_bytes 2"));
}

TEST_F(SeriesTest, SwapsCountByDirectionAndOrigin) {
  SwapSeries series(registry_);
  SwapRecord swap;
  swap.bytes.uploaded = 7;
  swap.duration = std::chrono::milliseconds(2);
  series.CountSwapIn(swap);
  series.CountSwapOut(swap, false);
  EXPECT_THAT(Text(), HasSubstr("torpor_swap_bytes_total{direction=\"in\",origin=\"uploaded\","
                                "path=\"pcie\"} 7"));
  EXPECT_THAT(Text(),
              HasSubstr("torpor_swap_duration_seconds_count{direction=\"in\",path=\"pcie\"} 1"));
  EXPECT_THAT(Text(),
              HasSubstr("torpor_swap_duration_seconds_count{direction=\"out\",path=\"pcie\"} 0"));
}

TEST_F(SeriesTest, AGpusBusyTimeOnlyGrows) {
  GpuSeries series(registry_);
  GpuSnapshot gpu;
  gpu.gpu = 1;
  gpu.busy_seconds = 4;
  series.Render(gpu);
  series.Render(gpu);
  EXPECT_THAT(Text(), HasSubstr("torpor_gpu_busy_seconds_total{"));
  EXPECT_THAT(Text(), HasSubstr("} 4\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("} 8\n")));
}

TEST_F(SeriesTest, OnlyConfiguredFunctionsCount) {
  std::map<std::string, FunctionConfig> functions;
  functions["f"].name = "f";
  functions["f"].deadline = std::chrono::milliseconds(80);
  FunctionSeries series(registry_);
  series.SetFunctions(functions);
  series.CountLease("g", std::chrono::seconds(3));
  series.CountLease("f", std::chrono::seconds(3));
  EXPECT_THAT(Text(), HasSubstr("torpor_gpu_seconds_total{function=\"f\",tenant=\"default\"} 3"));
  EXPECT_THAT(Text(), HasSubstr("torpor_deadline_seconds{function=\"f\"} 0.08"));
  EXPECT_THAT(Text(), Not(HasSubstr("function=\"g\"")));
}

}  // namespace
}  // namespace torpor::server
