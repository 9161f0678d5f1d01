#pragma once

#include "client_shim/nvml/nvml_api.h"

// How far a device is used. Memory is the function's, in all its processes, as cudaMemGetInfo
// tells it, and the daemon is asked for it each time; the rest is what this process knows of
// itself.
namespace torpor::shim {

nvmlReturn_t GetMemory(nvmlDevice_t device, nvmlMemory_t* memory);
nvmlReturn_t GetMemory(nvmlDevice_t device, nvmlMemory_v2_t* memory);

// The part of the last second in which this process had a GPU. That is the memory's as well: who
// has the GPU has its memory.
nvmlReturn_t GetUtilization(nvmlDevice_t device, nvmlUtilization_t* utilization);

// This process, once it has used the device, and no other.
nvmlReturn_t GetProcesses(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v1_t* processes);
nvmlReturn_t GetProcesses(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t* processes);

}  // namespace torpor::shim
