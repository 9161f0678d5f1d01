#pragma once

#include "client_shim/nvml/nvml_api.h"

// The use of a device. Memory is counted over all processes of the function, like cudaMemGetInfo,
// and asked of the daemon each time; the other figures concern this process only.
namespace torpor::shim {

// The function's memory in bytes. The second form checks the structure's version.
nvmlReturn_t GetMemory(nvmlDevice_t device, nvmlMemory_t* memory);
nvmlReturn_t GetMemory(nvmlDevice_t device, nvmlMemory_v2_t* memory);

// The share of the last second in which this process held a GPU, for GPU and memory alike.
nvmlReturn_t GetUtilization(nvmlDevice_t device, nvmlUtilization_t* utilization);

// Lists this process only, and only after its first use of the device.
nvmlReturn_t GetProcesses(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v1_t* processes);
nvmlReturn_t GetProcesses(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t* processes);

}  // namespace torpor::shim
