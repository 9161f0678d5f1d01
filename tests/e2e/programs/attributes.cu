// What a program asks about the device, its kernels and its pointers.
#include <cstring>

#include "tests/e2e/programs/check.h"

__global__ void __launch_bounds__(256) Small(float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x % 64] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x % 64];
}

__global__ void Large(float* out) {
  extern __shared__ float dynamic[];
  const auto last = static_cast<unsigned>(20'000 - 1);
  dynamic[last - threadIdx.x] = static_cast<float>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = dynamic[last - threadIdx.x];
}

static void Device() {
  int count = 0;
  CUDA(cudaGetDeviceCount(&count));
  REQUIRE(count >= 1);
  int device = -1;
  CUDA(cudaGetDevice(&device));
  REQUIRE(device == 0);
  cudaDeviceProp properties;
  CUDA(cudaGetDeviceProperties(&properties, 0));
  REQUIRE(std::strlen(properties.name) > 0);
  REQUIRE(properties.warpSize == 32);
  REQUIRE(properties.maxThreadsPerBlock >= 1024);
  REQUIRE(properties.multiProcessorCount >= 1);
  REQUIRE(properties.totalGlobalMem > 0);
  int value = 0;
  CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
  REQUIRE(value == 32);
  CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  REQUIRE(value == properties.major);
  int runtime = 0;
  int driver = 0;
  CUDA(cudaRuntimeGetVersion(&runtime));
  CUDA(cudaDriverGetVersion(&driver));
  REQUIRE(runtime >= 13'000 && driver >= 13'000);
}

static void Kernels() {
  cudaFuncAttributes attributes;
  CUDA(cudaFuncGetAttributes(&attributes, Small));
  REQUIRE(attributes.sharedSizeBytes == 64 * sizeof(float));
  REQUIRE(attributes.maxThreadsPerBlock == 256);
  int blocks = 0;
  CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Small, 256, 0));
  REQUIRE(blocks >= 1 && blocks <= 32);
  int least_grid = 0;
  int block = 0;
  CUDA(cudaOccupancyMaxPotentialBlockSize(&least_grid, &block, Small));
  REQUIRE(block >= 32 && block <= 256 && least_grid >= 1);

  // More shared memory than 48 KB must be asked for.
  float* out = nullptr;
  float result[128];
  constexpr int kBytes = 20'000 * sizeof(float);
  CUDA(cudaMalloc(&out, sizeof(result)));
  Large<<<1, 128, kBytes>>>(out);
  REQUIRE(cudaGetLastError() != cudaSuccess);
  CUDA(cudaFuncSetAttribute(Large, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  Large<<<1, 128, kBytes>>>(out);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(result, out, sizeof(result), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 128; ++i) REQUIRE(result[i] == static_cast<float>(i));
  CUDA(cudaFree(out));
}

static void Memory() {
  std::size_t free_before = 0;
  std::size_t free_after = 0;
  std::size_t total = 0;
  CUDA(cudaMemGetInfo(&free_before, &total));
  REQUIRE(free_before > 0 && free_before <= total);
  char* device = nullptr;
  CUDA(cudaMalloc(&device, 32 << 20));
  CUDA(cudaMemGetInfo(&free_after, &total));
  REQUIRE(free_after + (32 << 20) <= free_before);

  cudaPointerAttributes attributes;
  CUDA(cudaPointerGetAttributes(&attributes, device + 1000));
  REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  void* pinned = nullptr;
  CUDA(cudaMallocHost(&pinned, 4096));
  CUDA(cudaPointerGetAttributes(&attributes, pinned));
  REQUIRE(attributes.type == cudaMemoryTypeHost);
  int local = 0;
  CUDA(cudaPointerGetAttributes(&attributes, &local));
  REQUIRE(attributes.type == cudaMemoryTypeUnregistered);
  CUDA(cudaFreeHost(pinned));
  CUDA(cudaFree(device));
}

int main() {
  Device();
  Kernels();
  Memory();
  return Pass();
}
