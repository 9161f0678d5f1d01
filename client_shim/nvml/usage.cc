#include "client_shim/nvml/usage.h"

#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <optional>

#include "client_shim/core/client_core.h"
#include "client_shim/nvml/devices.h"
#include "client_shim/nvml/entry.h"

namespace torpor::shim {
namespace {

constexpr unsigned kNoInstance = ~0U;  // for a GPU without partitions

// Asks the daemon anew each time: other processes of the function allocate memory, too.
template <typename Memory>
nvmlReturn_t FillMemory(nvmlDevice_t device, Memory& memory) {
  wire::InquiryReply told;
  TORPOR_NVML_TRY(ToNvml(torpor_client_core()->Inquire(told)));
  const auto number = static_cast<std::size_t>(NumberOf(device));
  if (number >= told.devices.size()) return NVML_ERROR_GPU_IS_LOST;
  memory.total = told.devices[number].total_bytes;
  memory.free = told.free_bytes[number];
  memory.used = memory.total - memory.free;
  return NVML_SUCCESS;
}

// This process's use of the device; nullopt before the process has used the device.
std::optional<ClientCore::Use> FindOwnUse(nvmlDevice_t device) {
  const ClientCore* const core = torpor_client_core()->FindOpen(NumberOf(device));
  if (!core) return std::nullopt;
  const ClientCore::Use use = core->CurrentUse();
  const bool has_used = use.allocated_bytes > 0 || core->CommandCount() > 0;
  return has_used ? std::optional(use) : std::nullopt;
}

void Fill(nvmlProcessInfo_v1_t& process, std::uint64_t bytes) {
  process = {static_cast<unsigned>(getpid()), bytes};
}

void Fill(nvmlProcessInfo_v2_t& process, std::uint64_t bytes) {
  process = {static_cast<unsigned>(getpid()), bytes, kNoInstance, kNoInstance};
}

// As NVML, sets `count` to the number of processes even if the array is too short.
template <typename Process>
nvmlReturn_t ListProcesses(nvmlDevice_t device, unsigned* count, Process* processes) {
  if (!FindDevice(device) || !count) return NVML_ERROR_INVALID_ARGUMENT;
  const std::optional<ClientCore::Use> use = FindOwnUse(device);
  const bool has_room = *count > 0;
  *count = use ? 1 : 0;
  if (!use) return NVML_SUCCESS;
  if (!has_room) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (!processes) return NVML_ERROR_INVALID_ARGUMENT;
  Fill(*processes, use->allocated_bytes);
  return NVML_SUCCESS;
}

}  // namespace

nvmlReturn_t GetMemory(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (!FindDevice(device) || !memory) return NVML_ERROR_INVALID_ARGUMENT;
  return FillMemory(device, *memory);
}

nvmlReturn_t GetMemory(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (!FindDevice(device) || !memory) return NVML_ERROR_INVALID_ARGUMENT;
  if (memory->version != kMemoryVersion2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  memory->reserved = 0;
  return FillMemory(device, *memory);
}

nvmlReturn_t GetUtilization(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  if (!FindDevice(device) || !utilization) return NVML_ERROR_INVALID_ARGUMENT;
  const double share = FindOwnUse(device).value_or(ClientCore::Use{}).recent_share;
  const auto percent = static_cast<unsigned>(std::lround(100 * share));
  *utilization = {percent, percent};
  return NVML_SUCCESS;
}

nvmlReturn_t GetProcesses(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v1_t* processes) {
  return ListProcesses(device, count, processes);
}

nvmlReturn_t GetProcesses(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t* processes) {
  return ListProcesses(device, count, processes);
}

}  // namespace torpor::shim
