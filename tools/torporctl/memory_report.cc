#include "tools/torporctl/memory_report.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "tools/text_table/text_table.h"
#include "tools/torporctl/admin_call.h"
#include "tools/torporctl/node_report.h"

namespace torpor::torporctl {
namespace {

using Align = TextTable::Align;
using Json = nlohmann::ordered_json;

}  // namespace

absl::StatusOr<v1::NodeMemory> FetchMemory(const std::string& admin_socket) {
  return CallAdmin<v1::NodeMemory>(
      admin_socket, kQueryPatience, [](auto& stub, auto& context, auto& response) {
        return stub.GetMemory(&context, v1::GetMemoryRequest(), &response);
      });
}

std::string MemoryTable(const v1::NodeMemory& memory) {
  TextTable table({{"GPU", Align::kRight},
                   {"FUNCTION"},
                   {"USED", Align::kRight},
                   {"CACHED", Align::kRight},
                   {"REPLICAS", Align::kRight},
                   {"FREE", Align::kRight},
                   {"FRAGMENTED", Align::kRight},
                   {"POOL", Align::kRight}});
  for (const v1::GpuMemory& gpu : memory.gpus()) {
    table.AddRow({std::to_string(gpu.gpu()), "(all)", HumanBytes(gpu.memory().used_bytes()),
                  HumanBytes(gpu.memory().cached_bytes()), HumanBytes(gpu.memory().replica_bytes()),
                  HumanBytes(gpu.free_bytes()), HumanBytes(gpu.fragmented_bytes()),
                  HumanBytes(gpu.pool_bytes())});
    for (const v1::FunctionMemory& function : gpu.functions()) {
      table.AddRow({std::to_string(gpu.gpu()), function.name(),
                    HumanBytes(function.memory().used_bytes()),
                    HumanBytes(function.memory().cached_bytes()),
                    HumanBytes(function.memory().replica_bytes()), "", "", ""});
    }
  }
  return fmt::format("images  {} of host memory\n\n", HumanBytes(memory.host_image_bytes())) +
         table.Render();
}

std::string MemoryJson(const v1::NodeMemory& memory) {
  Json gpus = Json::array();
  for (const v1::GpuMemory& gpu : memory.gpus()) {
    Json functions = Json::array();
    for (const v1::FunctionMemory& function : gpu.functions()) {
      functions.push_back({{"name", function.name()},
                           {"used_bytes", function.memory().used_bytes()},
                           {"cached_bytes", function.memory().cached_bytes()},
                           {"replica_bytes", function.memory().replica_bytes()}});
    }
    gpus.push_back({{"gpu", gpu.gpu()},
                    {"state", gpu.state()},
                    {"pool_bytes", gpu.pool_bytes()},
                    {"used_bytes", gpu.memory().used_bytes()},
                    {"cached_bytes", gpu.memory().cached_bytes()},
                    {"replica_bytes", gpu.memory().replica_bytes()},
                    {"free_bytes", gpu.free_bytes()},
                    {"fragmented_bytes", gpu.fragmented_bytes()},
                    {"functions", std::move(functions)}});
  }
  const Json json = {{"host_image_bytes", memory.host_image_bytes()}, {"gpus", std::move(gpus)}};
  return json.dump(2) + "\n";
}

}  // namespace torpor::torporctl
