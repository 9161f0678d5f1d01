// Errors that a program can survive, each told at the call that CUDA tells it at.
#include <cstring>
#include <limits>
#include <vector>

#include "tests/e2e/programs/check.h"

__global__ void Set(int* value) { *value = 17; }

static void RequireUsable() {
  int* device = nullptr;
  int value = 0;
  CUDA(cudaMalloc(&device, sizeof(int)));
  Set<<<1, 1>>>(device);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(&value, device, sizeof(int), cudaMemcpyDeviceToHost));
  REQUIRE(value == 17);
  CUDA(cudaFree(device));
}

// Launches of nvcc's code tell a bad configuration as the driver does.
static void Launches() {
  Set<<<1, 2048>>>(nullptr);
  EXPECT_CUDA(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGetLastError(), cudaErrorInvalidValue);
  CUDA(cudaGetLastError());
  Set<<<0, 1>>>(nullptr);
  EXPECT_CUDA(cudaGetLastError(), cudaErrorInvalidValue);
  Set<<<1, 1, 1 << 20>>>(nullptr);
  REQUIRE(cudaGetLastError() != cudaSuccess);
  RequireUsable();
}

static void Memory() {
  void* pointer = nullptr;
  EXPECT_CUDA(cudaMalloc(&pointer, std::size_t{1} << 46), cudaErrorMemoryAllocation);
  EXPECT_CUDA(cudaGetLastError(), cudaErrorMemoryAllocation);
  CUDA(cudaMalloc(&pointer, 1000));
  CUDA(cudaFree(pointer));
  EXPECT_CUDA(cudaFree(pointer), cudaErrorInvalidValue);
  int local = 0;
  EXPECT_CUDA(cudaFree(&local), cudaErrorInvalidValue);
  CUDA(cudaFree(nullptr));
  (void)cudaGetLastError();
  RequireUsable();
}

static void Copies() {
  int* device = nullptr;
  std::vector<int> host(100);
  CUDA(cudaMalloc(&device, 100 * sizeof(int)));
  EXPECT_CUDA(cudaMemcpy(device, host.data(), 100, static_cast<cudaMemcpyKind>(77)),
              cudaErrorInvalidMemcpyDirection);
  REQUIRE(cudaMemcpy(device, host.data(), std::size_t{1} << 40, cudaMemcpyHostToDevice) !=
          cudaSuccess);
  (void)cudaGetLastError();
  CUDA(cudaFree(device));
  RequireUsable();
}

static void Devices() {
  EXPECT_CUDA(cudaSetDevice(1000), cudaErrorInvalidDevice);
  EXPECT_CUDA(cudaSetDevice(-1), cudaErrorInvalidDevice);
  (void)cudaGetLastError();
  RequireUsable();
}

static void Names() {
  REQUIRE(std::strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") ==
          0);
  REQUIRE(std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
  REQUIRE(std::strcmp(cudaGetErrorName(cudaSuccess), "cudaSuccess") == 0);
}

int main() {
  RequireUsable();
  Launches();
  Memory();
  Copies();
  Devices();
  Names();
  return Pass();
}
