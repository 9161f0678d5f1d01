#include "server/node/found_gpus.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace torpor::server {
namespace {

constexpr Bytes kLeastChunk = 2 * kMiB;
constexpr Bytes kMostChunk = 32 * kMiB;
constexpr Bytes kChunksOfAGpu = 4096;

}  // namespace

absl::StatusOr<FoundGpus> ReadDeviceList(std::string_view output,
                                         const std::vector<int>& configured) {
  const auto list = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (!list.is_object() || !list.contains("devices") || !list["devices"].is_array()) {
    return absl::InternalError(absl::StrCat(
        "torpor-executor --list-devices does not list devices: ", std::string(output)));
  }
  const nlohmann::json& devices = list["devices"];
  const int count = static_cast<int>(devices.size());
  FoundGpus found;
  for (const int gpu : configured) {
    if (gpu < 0 || gpu >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("gpus names GPU ", gpu, ", but there are ", count, ", counted from 0"));
    }
    found.gpus.push_back(GpuIndex{gpu});
  }
  for (int gpu = 0; configured.empty() && gpu < count; ++gpu) found.gpus.push_back(GpuIndex{gpu});
  if (found.gpus.empty()) return absl::NotFoundError("the CUDA driver finds no GPU");
  found.least_memory = std::numeric_limits<Bytes>::max();
  for (const GpuIndex gpu : found.gpus) {
    const nlohmann::json& device = devices[static_cast<std::size_t>(gpu.value)];
    if (!device.is_object() || !device.contains("total_bytes") ||
        !device["total_bytes"].is_number_unsigned()) {
      return absl::InternalError(absl::StrCat("GPU ", gpu.value, " is listed without its memory"));
    }
    found.least_memory = std::min(found.least_memory, device["total_bytes"].get<Bytes>());
  }
  return found;
}

Bytes ChunkBytesFor(AddressMode mode, Bytes least_memory) {
  if (mode == AddressMode::kTranslate) return kLeastChunk;
  return std::clamp(std::bit_floor(least_memory / kChunksOfAGpu), kLeastChunk, kMostChunk);
}

}  // namespace torpor::server
