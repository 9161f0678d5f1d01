#include "tools/torporctl/memory_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/units.h"

namespace torpor::torporctl {
namespace {

v1::NodeMemory OneGpu() {
  v1::NodeMemory memory;
  memory.set_host_image_bytes(kGiB);
  v1::GpuMemory& gpu = *memory.add_gpus();
  gpu.set_gpu(1);
  gpu.set_state("ready");
  gpu.set_pool_bytes(64 * kMiB);
  gpu.mutable_memory()->set_used_bytes(3 * kMiB);
  gpu.mutable_memory()->set_cached_bytes(kMiB);
  gpu.mutable_memory()->set_replica_bytes(2 * kMiB);
  gpu.set_free_bytes(60 * kMiB);
  gpu.set_fragmented_bytes(20 * kMiB);
  v1::FunctionMemory& digits = *gpu.add_functions();
  digits.set_name("digits");
  *digits.mutable_memory() = gpu.memory();
  return memory;
}

TEST(MemoryReportTest, ATableOfGpusAndOfWhatFunctionsHave) {
  EXPECT_EQ(MemoryTable(OneGpu()),
            "images  1.0GiB of host memory\n\n"
            "GPU  FUNCTION    USED  CACHED  REPLICAS     FREE  FRAGMENTED     POOL\n"
            "  1  (all)     3.0MiB  1.0MiB    2.0MiB  60.0MiB     20.0MiB  64.0MiB\n"
            "  1  digits    3.0MiB  1.0MiB    2.0MiB\n");
}

TEST(MemoryReportTest, JsonHasBytes) {
  const auto json = nlohmann::json::parse(MemoryJson(OneGpu()));
  EXPECT_EQ(json.at("host_image_bytes"), kGiB);
  const auto& gpu = json.at("gpus").at(0);
  EXPECT_EQ(gpu.at("free_bytes"), 60 * kMiB);
  EXPECT_EQ(gpu.at("fragmented_bytes"), 20 * kMiB);
  EXPECT_EQ(gpu.at("replica_bytes"), 2 * kMiB);
  EXPECT_EQ(gpu.at("functions").at(0).at("name"), "digits");
  EXPECT_EQ(gpu.at("functions").at(0).at("cached_bytes"), kMiB);
}

}  // namespace
}  // namespace torpor::torporctl
