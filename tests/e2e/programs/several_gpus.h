#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "tests/e2e/programs/check.h"

// What programs of several GPUs have on each, and the kernels that they run there.

constexpr int kCount = 1 << 16;
constexpr int kBlock = 256;
constexpr std::size_t kBytes = kCount * sizeof(int);

__global__ void Fill(int* to, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  to[i] = value + i;
}

__global__ void Add(int* to, const int* from, int value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  to[i] = from[i] + value;
}

__global__ void Spin(long long clocks) {
  const long long begin = clock64();
  while (clock64() - begin < clocks) {
  }
}

// What the program has on one GPU.
struct Gpu {
  int index = 0;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  int* memory = nullptr;

  explicit Gpu(int device) : index(device) {
    CUDA(cudaSetDevice(device));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaEventCreate(&event));
    CUDA(cudaMalloc(&memory, kBytes));
  }
  void Free() const {
    CUDA(cudaSetDevice(index));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaEventDestroy(event));
    CUDA(cudaFree(memory));
  }
};

inline std::vector<Gpu> AllGpus() {
  int count = 0;
  CUDA(cudaGetDeviceCount(&count));
  REQUIRE(count >= 2);
  std::vector<Gpu> gpus;
  for (int i = 0; i < count; ++i) gpus.emplace_back(i);
  return gpus;
}

inline void ExpectSequence(const std::vector<int>& values, int first) {
  for (int i = 0; i < kCount; ++i) REQUIRE(values[static_cast<std::size_t>(i)] == first + i);
}

inline std::vector<int> Fetch(const int* memory) {
  std::vector<int> values(kCount);
  CUDA(cudaMemcpy(values.data(), memory, kBytes, cudaMemcpyDeviceToHost));
  return values;
}
