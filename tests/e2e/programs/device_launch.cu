// A kernel that launches a kernel, which an emulated GPU refuses; others of its module run.
#include "tests/e2e/programs/check.h"

__global__ void Child(int* out) { *out = 1; }
__global__ void Parent(int* out) { Child<<<1, 1>>>(out); }

int main() {
  int* device = nullptr;
  CUDA(cudaMalloc(&device, sizeof(int)));
  Child<<<1, 1>>>(device);
  int value = 0;
  CUDA(cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
  REQUIRE(value == 1);
  Parent<<<1, 1>>>(device);
  const cudaError_t error = cudaDeviceSynchronize();
  REQUIRE(error == cudaSuccess || error == cudaErrorNotSupported);
  return Pass();
}
