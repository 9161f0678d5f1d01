#include "memory/trace/model_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace torpor::memory {
namespace {

TEST(ModelTrace, ModelsHaveThePapersParameters) {
  const std::map<std::string, double> megabytes = {
      {"DenseNet-169", 57}, {"DenseNet-201", 80}, {"Inception-v3", 95}, {"EfficientNet", 21},
      {"ResNet-50", 102},   {"ResNet-101", 178},  {"ResNet-152", 241},  {"Bert-qa", 1340}};
  ASSERT_EQ(PaperModels().size(), megabytes.size());
  for (const ModelShape& model : PaperModels()) {
    double bytes = 0;
    for (const TensorGroup& group : model.parameters) {
      bytes += static_cast<double>(group.bytes) * group.count;
    }
    EXPECT_NEAR(bytes / 1e6, megabytes.at(model.name), megabytes.at(model.name) / 10) << model.name;
  }
}

TEST(ModelTrace, IsATraceAndAlwaysTheSame) {
  ModelTraceOptions options;
  options.functions = 40;
  options.requests = 300;
  options.gpu_bytes = 4 * kGiB;
  const AllocationTrace trace = MakeModelTrace(options);
  const auto read = ParseTrace(FormatTrace(trace), "made");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, trace);
  EXPECT_EQ(MakeModelTrace(options), trace);
  options.seed = 2;
  EXPECT_NE(MakeModelTrace(options), trace);
}

TEST(ModelTrace, NeverLoadsMoreThanTheGpuHas) {
  ModelTraceOptions options;
  options.functions = 40;
  options.requests = 500;
  options.gpu_bytes = 4 * kGiB;
  std::map<std::uint32_t, std::map<std::uint32_t, Bytes>> blocks;
  std::map<std::uint32_t, bool> is_loaded;
  std::size_t evictions = 0;
  std::size_t common = 0;
  std::size_t all = 0;
  for (const TraceEvent& event : MakeModelTrace(options)) {
    if (event.kind == TraceEvent::Kind::kLoad) is_loaded[event.function] = true;
    if (event.kind == TraceEvent::Kind::kEvict) is_loaded[event.function] = false;
    if (event.kind == TraceEvent::Kind::kFree) blocks[event.function].erase(event.block);
    if (event.kind == TraceEvent::Kind::kAllocate) {
      blocks[event.function][event.block] = event.bytes;
      ++all;
      if (event.bytes == 2 * kMiB || event.bytes == 20 * kMiB) ++common;
    }
    evictions += event.kind == TraceEvent::Kind::kEvict ? 1 : 0;
    Bytes sum = 0;
    for (const auto& [function, of_function] : blocks) {
      if (!is_loaded[function]) continue;
      for (const auto& [block, bytes] : of_function) sum += bytes;
    }
    ASSERT_LE(sum, options.gpu_bytes);
  }
  EXPECT_GT(evictions, 100u);
  EXPECT_GT(common, all / 2);
}

}  // namespace
}  // namespace torpor::memory
