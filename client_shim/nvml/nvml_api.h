#pragma once

// The part of NVML's documented C interface that our library implements, by exported names.
// proto/cuda_api/nvml.py reads the declarations.
#define NVMLAPI

extern "C" {

enum nvmlReturn_t {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_ALREADY_INITIALIZED = 5,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_INSUFFICIENT_POWER = 8,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_IRQ_ISSUE = 11,
  NVML_ERROR_LIBRARY_NOT_FOUND = 12,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_CORRUPTED_INFOROM = 14,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_RESET_REQUIRED = 16,
  NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  NVML_ERROR_IN_USE = 19,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_NO_DATA = 21,
  NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22,
  NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
  NVML_ERROR_FREQ_NOT_SUPPORTED = 24,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
  NVML_ERROR_DEPRECATED = 26,
  NVML_ERROR_NOT_READY = 27,
  NVML_ERROR_GPU_NOT_FOUND = 28,
  NVML_ERROR_INVALID_STATE = 29,
  NVML_ERROR_RESET_TYPE_NOT_SUPPORTED = 30,
  NVML_ERROR_UNKNOWN = 999,
};

using nvmlDevice_t = struct nvmlDevice_st*;

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;  // device << 16 | vendor
  unsigned int pciSubSystemId;
  char busId[32];
};

// Sizes in bytes.
struct nvmlMemory_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct nvmlMemory_v2_t {
  unsigned int version;  // kMemoryVersion2, written by the caller
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};

// Shares in percent.
struct nvmlUtilization_t {
  unsigned int gpu;
  unsigned int memory;
};

// The structure of the first function with this name.
struct nvmlProcessInfo_v1_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;  // bytes
};

struct nvmlProcessInfo_v2_t {
  unsigned int pid;
  unsigned long long usedGpuMemory;  // bytes
  unsigned int gpuInstanceId;        // all bits: none
  unsigned int computeInstanceId;
};

nvmlReturn_t NVMLAPI nvmlInit();
nvmlReturn_t NVMLAPI nvmlInit_v2();
nvmlReturn_t NVMLAPI nvmlInitWithFlags(unsigned int flags);
nvmlReturn_t NVMLAPI nvmlShutdown();
const char* NVMLAPI nvmlErrorString(nvmlReturn_t result);

nvmlReturn_t NVMLAPI nvmlSystemGetDriverVersion(char* version, unsigned int length);
nvmlReturn_t NVMLAPI nvmlSystemGetNVMLVersion(char* version, unsigned int length);
nvmlReturn_t NVMLAPI nvmlSystemGetCudaDriverVersion(int* version);
nvmlReturn_t NVMLAPI nvmlSystemGetCudaDriverVersion_v2(int* version);

nvmlReturn_t NVMLAPI nvmlDeviceGetCount(unsigned int* count);
nvmlReturn_t NVMLAPI nvmlDeviceGetCount_v2(unsigned int* count);
nvmlReturn_t NVMLAPI nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device);
nvmlReturn_t NVMLAPI nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device);
nvmlReturn_t NVMLAPI nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device);
nvmlReturn_t NVMLAPI nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* device);
nvmlReturn_t NVMLAPI nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* device);

nvmlReturn_t NVMLAPI nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index);
nvmlReturn_t NVMLAPI nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned int length);
nvmlReturn_t NVMLAPI nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int length);
nvmlReturn_t NVMLAPI nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* info);
nvmlReturn_t NVMLAPI nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major,
                                                        int* minor);

nvmlReturn_t NVMLAPI nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory);
nvmlReturn_t NVMLAPI nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory);
nvmlReturn_t NVMLAPI nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                   nvmlUtilization_t* utilization);
// `count` is the capacity of the array, then the number of processes.
nvmlReturn_t NVMLAPI nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                          nvmlProcessInfo_v1_t* processes);
nvmlReturn_t NVMLAPI nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device,
                                                             unsigned int* count,
                                                             nvmlProcessInfo_v2_t* processes);
nvmlReturn_t NVMLAPI nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device,
                                                             unsigned int* count,
                                                             nvmlProcessInfo_v2_t* processes);

}  // extern "C"

// The version field of a structure combines its size and version.
inline constexpr unsigned int kMemoryVersion2 = sizeof(nvmlMemory_v2_t) | 2U << 24;
