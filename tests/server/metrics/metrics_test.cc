#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Config TwoFunctions() {
  Config config;
  for (const char* name : {"digits", "encoder"}) {
    config.functions[name].name = name;
    config.functions[name].tenant = "mail";
    config.functions[name].deadline = std::chrono::milliseconds(80);
  }
  return config;
}

class MetricsTest : public ::testing::Test {
 protected:
  std::string Text() { return metrics_.Render(node_); }

  Metrics metrics_{TwoFunctions()};
  NodeSnapshot node_;
};

TEST_F(MetricsTest, ANewNodeExportsItsVersionAndEveryFunction) {
  EXPECT_THAT(Text(), HasSubstr("torpor_build_info{version=\"0.1.0\"} 1"));
  EXPECT_THAT(Text(), HasSubstr("torpor_deadline_seconds{function=\"digits\"} 0.08"));
}

TEST_F(MetricsTest, AChangedObjectiveIsExported) {
  std::map<std::string, FunctionConfig> functions = TwoFunctions().functions;
  functions["digits"].deadline = std::chrono::milliseconds(10);
  functions["digits"].percentile = 0.9;
  metrics_.SetFunctions(functions);
  EXPECT_THAT(Text(), HasSubstr("torpor_deadline_seconds{function=\"digits\"} 0.01"));
  EXPECT_THAT(Text(), HasSubstr("torpor_objective_percentile{function=\"digits\"} 0.9"));
}

TEST_F(MetricsTest, FunctionsComeAndGoWithAllTheirSeries) {
  node_.gpus.emplace_back().gpu = 0;
  for (const char* name : {"digits", "encoder"}) node_.functions.emplace_back().name = name;
  node_.functions[0].instances.emplace_back().name = "a";
  EXPECT_THAT(Text(), HasSubstr("instance=\"a\""));
  std::map<std::string, FunctionConfig> functions = TwoFunctions().functions;
  functions.erase("digits");
  functions["encoder"].tenant = "search";
  functions["speech"].name = "speech";
  metrics_.SetFunctions(functions);
  node_.functions.erase(node_.functions.begin());
  const std::string text = Text();
  EXPECT_THAT(text, Not(HasSubstr("digits")));
  EXPECT_THAT(text,
              HasSubstr("torpor_scheduled_requests_total{deadline=\"met\",function=\"speech\"}"));
  EXPECT_THAT(text,
              HasSubstr("torpor_scheduled_requests_total{deadline=\"met\",function=\"encoder\"}"));
  EXPECT_THAT(text, HasSubstr("torpor_gpu_seconds_total{function=\"encoder\",tenant=\"search\"}"));
  EXPECT_THAT(text, Not(HasSubstr("function=\"encoder\",tenant=\"mail\"")));
}

TEST_F(MetricsTest, TheSchedulersViewIsExported) {
  EXPECT_THAT(Text(), Not(HasSubstr("torpor_queue_alpha ")));
  node_.alpha = 0.25;
  FunctionSnapshot& digits = node_.functions.emplace_back();
  digits.name = "digits";
  digits.objective = {.percentile = 0.9, .waiting = 3, .finished = 10, .in_time = 8};
  EXPECT_THAT(Text(), Not(HasSubstr("torpor_function_required_requests{")));
  digits.objective.required_count = 10;
  digits.objective.is_first_group = true;
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("torpor_queue_alpha 0.25"));
  EXPECT_THAT(text, HasSubstr("torpor_function_required_requests{function=\"digits\"} 10"));
  EXPECT_THAT(text, HasSubstr("torpor_function_first_group{function=\"digits\"} 1"));
  EXPECT_THAT(text, HasSubstr("torpor_function_compliant{function=\"digits\"} 0"));
  EXPECT_THAT(text, HasSubstr("torpor_function_queued_requests{function=\"digits\"} 3"));
  for (const char* series :
       {"deadline=\"met\",function=\"digits\"} 8", "deadline=\"missed\",function=\"digits\"} 2"}) {
    EXPECT_THAT(text, HasSubstr(series));
  }
}

TEST_F(MetricsTest, InstancesHaveSeriesWhereThereAreSeveral) {
  node_.gpus.emplace_back().gpu = 1;
  FunctionSnapshot& digits = node_.functions.emplace_back();
  digits.name = "digits";
  EXPECT_THAT(Text(), Not(HasSubstr("instance=")));
  InstanceSnapshot& a = digits.instances.emplace_back();
  a.name = "a";
  a.health = "serving";
  a.requests = 3;
  a.resident_gpus = {1};
  a.gpu_seconds = 0.5;
  digits.instances.emplace_back().name = "b";
  digits.instances.back().health = "down";
  const std::string text = Text();
  for (const char* line : {
           "torpor_instance_serving{function=\"digits\",instance=\"a\"} 1",
           "torpor_instance_serving{function=\"digits\",instance=\"b\"} 0",
           "torpor_instance_requests_total{function=\"digits\",instance=\"a\"} 3",
           "torpor_instance_gpu_seconds_total{function=\"digits\",instance=\"a\"} 0.5",
           "torpor_instance_resident{function=\"digits\",gpu=\"1\",instance=\"a\"} 1",
           "torpor_instance_resident{function=\"digits\",gpu=\"1\",instance=\"b\"} 0",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(MetricsTest, StrangersNamesNeverBecomeLabels) {
  metrics_.OnLeaseEnded("stranger", GpuIndex{0}, std::chrono::seconds(1), true);
  node_.functions.emplace_back().name = "stranger";
  EXPECT_THAT(Text(), Not(HasSubstr("stranger")));
}

TEST_F(MetricsTest, SwapsCountBytesByPathDirectionAndOrigin) {
  metrics_.OnSwapIn({"digits",
                     GpuIndex{0},
                     SwapPath::kPcie,
                     {.uploaded = 4096, .scratch = 64},
                     std::chrono::milliseconds(1)});
  metrics_.OnSwapOut(
      {"digits", GpuIndex{0}, SwapPath::kPcie, {.changed = 512}, std::chrono::milliseconds(1)},
      WriteBackReason::kEviction);
  metrics_.OnEviction("digits", GpuIndex{0}, EvictionReason::kMemoryFull);
  const std::string text = Text();
  const auto bytes = [](const std::string& direction, const std::string& origin,
                        const std::string& path) {
    return "torpor_swap_bytes_total{direction=\"" + direction + "\",origin=\"" + origin +
           "\",path=\"" + path + "\"} ";
  };
  EXPECT_THAT(text, HasSubstr(bytes("in", "uploaded", "pcie") + "4096\n"));
  EXPECT_THAT(text, HasSubstr(bytes("in", "scratch", "pcie") + "64\n"));
  EXPECT_THAT(text, HasSubstr(bytes("out", "changed", "pcie") + "512\n"));
  EXPECT_THAT(text, HasSubstr(bytes("in", "uploaded", "nvlink") + "0\n"));
  EXPECT_THAT(text, HasSubstr("torpor_evictions_total{reason=\"memory_full\"} 1"));
}

TEST_F(MetricsTest, WriteBacksCountByReasonAndIdleOnesAreNoSwaps) {
  SwapRecord part{"digits", GpuIndex{0}, SwapPath::kPcie, {.changed = 512}, {}};
  metrics_.OnSwapOut(part, WriteBackReason::kIdle);
  metrics_.OnSwapOut(part, WriteBackReason::kIdle);
  part.bytes.scratch = 100;
  metrics_.OnSwapOut(part, WriteBackReason::kMove);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("torpor_write_back_bytes_total{reason=\"idle\"} 1024\n"));
  EXPECT_THAT(text, HasSubstr("torpor_write_back_bytes_total{reason=\"move\"} 612\n"));
  EXPECT_THAT(text, HasSubstr("torpor_write_back_bytes_total{reason=\"eviction\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("torpor_swap_duration_seconds_count{direction=\"out\",path=\"pcie\"}"
                              " 1\n"));
}

TEST_F(MetricsTest, GpuSeriesCarryTheLabelsOfNvidiasExporter) {
  GpuSnapshot& gpu = node_.gpus.emplace_back();
  gpu.gpu = 1;
  gpu.uuid = "GPU-1";
  gpu.busy_seconds = 2.5;
  gpu.free_bytes = 2048;
  gpu.link_bytes_per_second = 12e9;
  gpu.fragmented_bytes = 1024;
  FunctionSnapshot& function = node_.functions.emplace_back();
  function.name = "digits";
  function.resident_gpus = {1};
  function.memory[1] = {.used = 500, .cached = 12};
  function.image_bytes = 512;
  Text();
  const std::string text = Text();  // a second scrape must not count twice
  EXPECT_THAT(text, HasSubstr("torpor_gpu_busy_seconds_total{"));
  EXPECT_THAT(text, HasSubstr("UUID=\"GPU-1\""));
  EXPECT_THAT(text, HasSubstr("gpu=\"1\"} 2.5"));
  EXPECT_THAT(text, HasSubstr("torpor_function_resident{function=\"digits\",gpu=\"1\"} 1"));
  EXPECT_THAT(text, HasSubstr("torpor_function_image_bytes{function=\"digits\"} 512"));
  EXPECT_THAT(text, HasSubstr("torpor_function_gpu_bytes{function=\"digits\",gpu=\"1\"} 512"));
  EXPECT_THAT(text, HasSubstr("gpu=\"1\"} 2048"));
  EXPECT_THAT(text, HasSubstr("torpor_gpu_link_bytes_per_second{"));
  EXPECT_THAT(text, HasSubstr("gpu=\"1\"} 12000000000"));
  EXPECT_THAT(text, HasSubstr("gpu=\"1\"} 1024"));
}

TEST_F(MetricsTest, GpuAndHostMemoryAreAttributedToTheirPayer) {
  metrics_.OnLeaseEnded("encoder", GpuIndex{0}, std::chrono::milliseconds(1500), true);
  FunctionSnapshot& function = node_.functions.emplace_back();
  function.name = "digits";
  function.host_byte_seconds = 4096;
  Text();
  const std::string text = Text();  // a second scrape must not count twice
  EXPECT_THAT(text,
              HasSubstr("torpor_gpu_seconds_total{function=\"encoder\",tenant=\"mail\"} 1.5"));
  EXPECT_THAT(text, HasSubstr("torpor_gpu_seconds_total{function=\"digits\",tenant=\"mail\"} 0"));
  EXPECT_THAT(
      text, HasSubstr("torpor_host_byte_seconds_total{function=\"digits\",tenant=\"mail\"} 4096"));
}

}  // namespace
}  // namespace torpor::server
