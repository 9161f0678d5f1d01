// cudaDeviceReset: everything that the process had on the device is gone, and it can begin anew.
#include "tests/e2e/programs/check.h"

__device__ int counter = 5;

__global__ void Count(int* out) { *out = ++counter; }

static int CountOnce() {
  int* device = nullptr;
  int value = 0;
  CUDA(cudaMalloc(&device, sizeof(value)));
  Count<<<1, 1>>>(device);
  CUDA(cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
  CUDA(cudaFree(device));
  return value;
}

int main() {
  REQUIRE(CountOnce() == 6);
  REQUIRE(CountOnce() == 7);
  std::size_t free_before = 0;
  std::size_t total = 0;
  CUDA(cudaMemGetInfo(&free_before, &total));
  for (int i = 0; i < 3; ++i) {
    void* device = nullptr;
    void* pinned = nullptr;
    cudaStream_t stream;
    cudaEvent_t event;
    CUDA(cudaMalloc(&device, 64 << 20));
    CUDA(cudaMallocHost(&pinned, 1 << 20));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaEventCreate(&event));
    CUDA(cudaMemsetAsync(device, 1, 64 << 20, stream));
    CUDA(cudaEventRecord(event, stream));
    void* address = nullptr;
    CUDA(cudaGetSymbolAddress(&address, counter));
    CUDA(cudaDeviceReset());
    cudaPointerAttributes attributes;
    CUDA(cudaPointerGetAttributes(&attributes, device));
    REQUIRE(attributes.type == cudaMemoryTypeUnregistered);
    // Variables have their first values again.
    REQUIRE(CountOnce() == 6);
  }
  std::size_t free_after = 0;
  CUDA(cudaMemGetInfo(&free_after, &total));
  REQUIRE(free_after + (16 << 20) >= free_before);
  return Pass();
}
