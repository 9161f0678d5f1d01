#include "tests/soak/accounts.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "tests/server/router/raw_http.h"
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

std::string MetricsPage(const std::string& address) {
  auto connection = server::RawConnection::To(address);
  connection.Send("GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n");
  return connection.Read().value_or(server::RawMessage()).body;
}

Reports Ask(const std::string& admin_socket) {
  Reports reports;
  const auto status = torporctl::FetchStatus(admin_socket);
  const auto functions = torporctl::FetchFunctions(admin_socket);
  const auto memory = torporctl::FetchMemory(admin_socket);
  EXPECT_TRUE(status.ok() && functions.ok() && memory.ok());
  if (status.ok()) reports.status = *status;
  if (memory.ok()) reports.memory = *memory;
  if (functions.ok()) reports.functions = *functions;
  reports.metrics = MetricsPage(reports.status.metrics_address());
  return reports;
}

// The values of a series by the value of one of its labels.
std::map<std::string, Bytes> Metric(const Reports& reports, const std::string& name,
                                    const std::string& label) {
  std::map<std::string, Bytes> values;
  std::istringstream lines(reports.metrics);
  for (std::string line; std::getline(lines, line);) {
    const std::string begin = label + "=\"";
    const std::size_t at = line.find(begin);
    if (!line.starts_with(name + "{") || at == std::string::npos) continue;
    const std::size_t value = at + begin.size();
    values[line.substr(value, line.find('"', value) - value)] =
        static_cast<Bytes>(std::stod(line.substr(line.rfind(' ') + 1)));
  }
  return values;
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

// What the executors say, exactly: every byte of a pool is one function's, or free.
void CheckMemory(const Reports& reports, const std::map<std::string, Bytes>& allocated) {
  for (const v1::GpuMemory& gpu : reports.memory.gpus()) {
    SCOPED_TRACE("torporctl memory, GPU " + std::to_string(gpu.gpu()));
    Bytes used = 0;
    Bytes cached = 0;
    for (const v1::FunctionMemory& function : gpu.functions()) {
      used += function.memory().used_bytes();
      cached += function.memory().cached_bytes();
      const auto known = allocated.find(function.name());
      if (known == allocated.end()) continue;
      EXPECT_EQ(function.memory().used_bytes(), known->second) << function.name();
    }
    EXPECT_EQ(gpu.memory().used_bytes(), used);
    EXPECT_EQ(gpu.memory().cached_bytes(), cached);
    EXPECT_EQ(used + cached + gpu.free_bytes(), gpu.pool_bytes());
    EXPECT_EQ(used + cached, reports.status.gpus(gpu.gpu()).used_bytes());
    const std::string label = std::to_string(gpu.gpu());
    EXPECT_EQ(Metric(reports, "torpor_gpu_used_bytes", "gpu").at(label), used);
    EXPECT_EQ(Metric(reports, "torpor_gpu_cached_bytes", "gpu").at(label), cached);
  }
}

}  // namespace

void CheckAccounts(const std::string& admin_socket, const std::map<std::string, Bytes>& allocated) {
  const Reports reports = Ask(admin_socket);
  CheckUsed(reports, ResidentBytes(reports.functions));
  CheckMemory(reports, allocated);
  const auto images = Metric(reports, "torpor_function_image_bytes", "function");
  for (const v1::FunctionStatus& function : reports.functions.functions()) {
    const auto known = allocated.find(function.name());
    if (known == allocated.end()) continue;
    EXPECT_GE(function.image_bytes(), known->second) << function.name();
    EXPECT_LE(function.resident_gpus_size(), 1) << function.name();
    const auto metric = images.find(function.name());
    ASSERT_NE(metric, images.end()) << reports.metrics;
    EXPECT_EQ(metric->second, function.image_bytes()) << function.name();
  }
}

void CheckGpusAreEmpty(const std::string& admin_socket) {
  const Reports reports = Ask(admin_socket);
  EXPECT_EQ(ResidentBytes(reports.functions).size(), 0U);
  CheckUsed(reports, {});
  CheckMemory(reports, {});
}

}  // namespace torpor::soak
