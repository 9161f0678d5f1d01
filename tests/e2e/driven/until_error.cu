// Works until a call fails, and says how. Its test takes the daemon away.
#include <cstdio>

#include "tests/e2e/programs/check.h"

__global__ void Increment(int* value) { ++*value; }

int main() {
  int* device = nullptr;
  CUDA(cudaMalloc(&device, sizeof(int)));
  cudaError_t error = cudaSuccess;
  for (int i = 0; error == cudaSuccess; ++i) {
    Increment<<<1, 1>>>(device);
    error = cudaDeviceSynchronize();
    if (i == 0 && error == cudaSuccess) {
      std::puts("working");
      std::fflush(stdout);
    }
  }
  std::printf("%s, %s\n", cudaGetErrorName(error), cudaGetErrorName(cudaFree(device)));
  return 0;
}
