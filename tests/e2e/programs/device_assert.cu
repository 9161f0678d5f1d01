// A device-side assertion that fails: an error of its own, which stays.
#include <cassert>

#include "tests/e2e/programs/check.h"

__global__ void RequireBelow(const int* limit) { assert(static_cast<int>(threadIdx.x) < *limit); }

int main() {
  int* device = nullptr;
  int limit = 32;
  CUDA(cudaMalloc(&device, sizeof(limit)));
  CUDA(cudaMemcpy(device, &limit, sizeof(limit), cudaMemcpyHostToDevice));
  RequireBelow<<<1, 32>>>(device);
  CUDA(cudaDeviceSynchronize());
  limit = 7;
  CUDA(cudaMemcpy(device, &limit, sizeof(limit), cudaMemcpyHostToDevice));
  RequireBelow<<<1, 32>>>(device);
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaErrorAssert);
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaErrorAssert);
  EXPECT_CUDA(cudaMemcpy(&limit, device, sizeof(limit), cudaMemcpyDeviceToHost), cudaErrorAssert);
  RequireBelow<<<1, 32>>>(device);
  EXPECT_CUDA(cudaGetLastError(), cudaErrorAssert);
  return Pass();
}
