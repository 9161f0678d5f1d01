// NVML says of a device what CUDA says of it, and what the program uses of it.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "client_shim/nvml/nvml_api.h"
#include "tests/e2e/programs/check.h"

#define NVML(name, ...) REQUIRE(NVML_FUNCTION(name)(__VA_ARGS__) == NVML_SUCCESS)
#define NVML_FUNCTION(name) reinterpret_cast<decltype(&name)>(Function(#name))

static void* Function(const char* name) {
  static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  void* const function = dlsym(library, name);
  REQUIRE(function != nullptr);
  return function;
}

__global__ void Set(int* value, int to) { *value = to; }

constexpr unsigned long long kBytes = 64 << 20;
// More than the child had, which the daemon may still be taking back after the child's end.
constexpr unsigned long long kOfChild = 8 << 20;

static nvmlDevice_t CurrentDevice() {
  char id[32] = {};
  CUDA(cudaDeviceGetPCIBusId(id, sizeof id, 0));
  nvmlDevice_t device = nullptr;
  NVML(nvmlDeviceGetHandleByPciBusId_v2, id, &device);
  return device;
}

static void CompareWithCuda(nvmlDevice_t device) {
  cudaDeviceProp properties{};
  CUDA(cudaGetDeviceProperties(&properties, 0));
  char name[96] = {};
  NVML(nvmlDeviceGetName, device, name, sizeof name);
  REQUIRE(std::strcmp(name, properties.name) == 0);
  int major = 0;
  int minor = 0;
  NVML(nvmlDeviceGetCudaComputeCapability, device, &major, &minor);
  REQUIRE(major == properties.major && minor == properties.minor);
  nvmlPciInfo_t pci{};
  NVML(nvmlDeviceGetPciInfo_v3, device, &pci);
  REQUIRE(pci.bus == static_cast<unsigned>(properties.pciBusID));
  char uuid[96] = {};
  NVML(nvmlDeviceGetUUID, device, uuid, sizeof uuid);
  char first_byte[8] = {};
  std::snprintf(first_byte, sizeof first_byte, "GPU-%02x",
                static_cast<unsigned char>(properties.uuid.bytes[0]));
  REQUIRE(std::strncmp(uuid, first_byte, std::strlen(first_byte)) == 0);
  nvmlDevice_t same = nullptr;
  NVML(nvmlDeviceGetHandleByUUID, uuid, &same);
  REQUIRE(same == device);
}

static nvmlMemory_t Memory(nvmlDevice_t device) {
  nvmlMemory_t memory{};
  NVML(nvmlDeviceGetMemoryInfo, device, &memory);
  REQUIRE(memory.total >= memory.used && memory.free <= memory.total);
  return memory;
}

static void AllocationsAreSeen(nvmlDevice_t device) {
  const nvmlMemory_t before = Memory(device);
  void* block = nullptr;
  CUDA(cudaMalloc(&block, kBytes));
  REQUIRE(Memory(device).used + kOfChild >= before.used + kBytes);
  CUDA(cudaFree(block));
}

static void WorkIsSeen(nvmlDevice_t device) {
  int* value = nullptr;
  CUDA(cudaMalloc(&value, sizeof *value));
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  nvmlUtilization_t utilization{};
  while (utilization.gpu == 0) {
    REQUIRE(std::chrono::steady_clock::now() < patience);
    Set<<<1, 1>>>(value, 1);
    CUDA(cudaDeviceSynchronize());
    NVML(nvmlDeviceGetUtilizationRates, device, &utilization);
  }
  REQUIRE(utilization.gpu <= 100);
  CUDA(cudaFree(value));
}

static void AChildStillCountsDevices(unsigned expected) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    unsigned count = 0;
    const bool counts = NVML_FUNCTION(nvmlInit_v2)() == NVML_SUCCESS &&
                        NVML_FUNCTION(nvmlDeviceGetCount_v2)(&count) == NVML_SUCCESS;
    _exit(counts && count == expected ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

// NVML leaves CUDA as it is: the child of a program that has only counted devices may use them.
static void AChildMayUseCuda() {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int* device = nullptr;
    int value = 0;
    CUDA(cudaMalloc(&device, sizeof *device));
    Set<<<1, 1>>>(device, 7);
    CUDA(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
    _exit(value == 7 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

int main() {
  unsigned count = 0;
  REQUIRE(NVML_FUNCTION(nvmlDeviceGetCount_v2)(&count) == NVML_ERROR_UNINITIALIZED);
  NVML(nvmlInit_v2);  // before any call of CUDA
  NVML(nvmlDeviceGetCount_v2, &count);
  AChildMayUseCuda();
  int devices = 0;
  CUDA(cudaGetDeviceCount(&devices));
  REQUIRE(count >= static_cast<unsigned>(devices));
  const nvmlDevice_t device = CurrentDevice();
  CompareWithCuda(device);
  AllocationsAreSeen(device);
  WorkIsSeen(device);
  AChildStillCountsDevices(count);
  NVML(nvmlShutdown);
  REQUIRE(NVML_FUNCTION(nvmlDeviceGetCount_v2)(&count) == NVML_ERROR_UNINITIALIZED);
  return Pass();
}
