#include "tests/soak/accounts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/e2e/await.h"
#include "tests/e2e/metrics_page.h"
#include "tools/torporctl/admin_requests.h"
#include "tools/torporctl/memory_report.h"
#include "tools/torporctl/node_report.h"

namespace torpor::soak {
namespace {

// The node as everybody tells of it, at one moment in which nothing changes.
struct Reports {
  v1::NodeStatus status;
  v1::NodeMemory memory;
  v1::ListFunctionsResponse functions;
  std::string metrics;
};

Reports Ask(const std::string& admin_socket) {
  Reports reports;
  const auto status = torporctl::FetchStatus(admin_socket);
  const auto functions = torporctl::FetchFunctions(admin_socket);
  const auto memory = torporctl::FetchMemory(admin_socket);
  EXPECT_TRUE(status.ok() && functions.ok() && memory.ok());
  if (status.ok()) reports.status = *status;
  if (memory.ok()) reports.memory = *memory;
  if (functions.ok()) reports.functions = *functions;
  reports.metrics = e2e::ReadMetrics(reports.status.metrics_address());
  return reports;
}

std::map<int, Bytes> ResidentBytes(const v1::ListFunctionsResponse& functions) {
  std::map<int, Bytes> bytes;
  for (const v1::FunctionStatus& function : functions.functions()) {
    for (const int gpu : function.resident_gpus()) bytes[gpu] += function.image_bytes();
  }
  return bytes;
}

void CheckUsed(const Reports& reports, const std::map<int, Bytes>& resident) {
  for (const v1::GpuStatus& gpu : reports.status.gpus()) {
    const auto expected = resident.find(gpu.gpu());
    const Bytes bytes = expected == resident.end() ? 0 : expected->second;
    EXPECT_EQ(gpu.used_bytes(), bytes) << "torporctl status, GPU " << gpu.gpu();
  }
}

// By function, what its image takes of the GPU.
std::map<std::string, Bytes> ResidentOn(int gpu, const v1::ListFunctionsResponse& functions) {
  std::map<std::string, Bytes> bytes;
  for (const v1::FunctionStatus& function : functions.functions()) {
    const auto& gpus = function.resident_gpus();
    const bool is_there = std::find(gpus.begin(), gpus.end(), gpu) != gpus.end();
    if (is_there) bytes[function.name()] = function.image_bytes();
  }
  return bytes;
}

// What the executors say, exactly: every byte of a pool is one function's, or free.
void CheckMemory(const Reports& reports, const std::map<std::string, Bytes>& allocated) {
  for (const v1::GpuMemory& gpu : reports.memory.gpus()) {
    SCOPED_TRACE("torporctl memory, GPU " + std::to_string(gpu.gpu()));
    std::map<std::string, Bytes> resident = ResidentOn(gpu.gpu(), reports.functions);
    Bytes used = 0;
    Bytes cached = 0;
    for (const v1::FunctionMemory& function : gpu.functions()) {
      used += function.memory().used_bytes();
      cached += function.memory().cached_bytes();
      EXPECT_EQ(function.memory().used_bytes() + function.memory().cached_bytes(),
                resident[function.name()])
          << function.name();
      const auto known = allocated.find(function.name());
      if (known == allocated.end()) continue;
      EXPECT_EQ(function.memory().used_bytes(), known->second) << function.name();
    }
    EXPECT_EQ(gpu.memory().used_bytes(), used);
    EXPECT_EQ(gpu.memory().cached_bytes(), cached);
    EXPECT_EQ(used + cached + gpu.free_bytes(), gpu.pool_bytes());
    EXPECT_EQ(used + cached, reports.status.gpus(gpu.gpu()).used_bytes());
    const std::string label = std::to_string(gpu.gpu());
    const std::string& page = reports.metrics;
    EXPECT_EQ(e2e::ValuesBy(page, "torpor_gpu_used_bytes", "gpu").at(label), used);
    EXPECT_EQ(e2e::ValuesBy(page, "torpor_gpu_cached_bytes", "gpu").at(label), cached);
  }
}

// Whether no executor keeps memory that a function has freed.
bool IsAllFreed(const std::string& admin_socket, const std::map<std::string, Bytes>& allocated) {
  const auto memory = torporctl::FetchMemory(admin_socket);
  if (!memory.ok()) return false;
  for (const v1::GpuMemory& gpu : memory->gpus()) {
    for (const v1::FunctionMemory& function : gpu.functions()) {
      const auto known = allocated.find(function.name());
      const bool is_known = known != allocated.end();
      if (is_known && function.memory().used_bytes() > known->second) return false;
    }
  }
  return true;
}

// Freed memory stays as long as a replay may need it: until all is saved.
void SaveAll(const std::string& admin_socket, const std::map<std::string, Bytes>& allocated) {
  for (const auto& [function, bytes] : allocated) {
    const absl::Status saved = torporctl::Checkpoint(admin_socket, function);
    EXPECT_TRUE(saved.ok()) << function << ": " << saved;
  }
  const absl::Status freed = e2e::Await("what was freed has left the GPUs",
                                        [&] { return IsAllFreed(admin_socket, allocated); });
  EXPECT_TRUE(freed.ok()) << freed;
}

}  // namespace

void CheckAccounts(const std::string& admin_socket, const std::map<std::string, Bytes>& allocated) {
  SaveAll(admin_socket, allocated);
  const Reports reports = Ask(admin_socket);
  CheckUsed(reports, ResidentBytes(reports.functions));
  CheckMemory(reports, allocated);
  const auto images = e2e::ValuesBy(reports.metrics, "torpor_function_image_bytes", "function");
  for (const v1::FunctionStatus& function : reports.functions.functions()) {
    const auto metric = images.find(function.name());
    ASSERT_NE(metric, images.end()) << reports.metrics;
    EXPECT_EQ(metric->second, static_cast<double>(function.image_bytes())) << function.name();
    const auto known = allocated.find(function.name());
    if (known == allocated.end()) continue;
    EXPECT_GE(function.image_bytes(), known->second) << function.name();
  }
}

void CheckGpusAreEmpty(const std::string& admin_socket) {
  const Reports reports = Ask(admin_socket);
  EXPECT_EQ(ResidentBytes(reports.functions).size(), 0U);
  CheckUsed(reports, {});
  CheckMemory(reports, {});
}

}  // namespace torpor::soak
