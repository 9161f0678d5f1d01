#include "client_shim/nvml/usage.h"

#include <unistd.h>

#include <cmath>
#include <cstdint>

#include "client_shim/core/client_core.h"
#include "client_shim/nvml/devices.h"
#include "client_shim/nvml/entry.h"

namespace torpor::shim {
namespace {

constexpr unsigned kNoInstance = ~0U;  // of a GPU that is not partitioned

ClientCore& CoreOf(nvmlDevice_t device) {
  return *torpor_client_core()->OfDevice(NumberOf(device));
}

template <typename Memory>
nvmlReturn_t FillMemory(nvmlDevice_t device, Memory& memory) {
  ClientCore& core = CoreOf(device);
  TORPOR_NVML_TRY(ToNvml(core.Start()));
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  TORPOR_NVML_TRY(ToNvml(core.MemGetInfo(free_bytes, total_bytes)));
  memory.total = total_bytes;
  memory.free = free_bytes;
  memory.used = total_bytes - free_bytes;
  return NVML_SUCCESS;
}

// What of the device is this process's, if it has used it.
nvmlReturn_t FindOwnUse(nvmlDevice_t device, bool& has_used, ClientCore::Use& use) {
  ClientCore& core = CoreOf(device);
  has_used = false;
  if (!core.IsOpen()) return NVML_SUCCESS;
  TORPOR_NVML_TRY(ToNvml(core.Start()));
  use = core.CurrentUse();
  has_used = use.allocated_bytes > 0 || core.CommandCount() > 0;
  return NVML_SUCCESS;
}

void Fill(nvmlProcessInfo_v1_t& process, std::uint64_t bytes) {
  process = {static_cast<unsigned>(getpid()), bytes};
}

void Fill(nvmlProcessInfo_v2_t& process, std::uint64_t bytes) {
  process = {static_cast<unsigned>(getpid()), bytes, kNoInstance, kNoInstance};
}

template <typename Process>
nvmlReturn_t ListProcesses(nvmlDevice_t device, unsigned* count, Process* processes) {
  if (!FindDevice(device) || !count) return NVML_ERROR_INVALID_ARGUMENT;
  bool has_used = false;
  ClientCore::Use use;
  TORPOR_NVML_TRY(FindOwnUse(device, has_used, use));
  const bool has_room = *count > 0;
  *count = has_used ? 1 : 0;
  if (!has_used) return NVML_SUCCESS;
  if (!has_room) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (!processes) return NVML_ERROR_INVALID_ARGUMENT;
  Fill(*processes, use.allocated_bytes);
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
  ClientCore& core = CoreOf(device);
  TORPOR_NVML_TRY(ToNvml(core.Start()));
  const auto percent = static_cast<unsigned>(std::lround(100 * core.CurrentUse().recent_share));
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
