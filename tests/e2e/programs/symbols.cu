// __constant__ and __device__ variables: initial values, copies, addresses.
#include "tests/e2e/programs/check.h"

__constant__ float factors[4] = {1, 2, 3, 4};
__device__ int counter = 40;
__device__ float table[64];

__global__ void Apply(float* out) {
  const unsigned i = threadIdx.x;
  table[i] = factors[i % 4] * static_cast<float>(i);
  atomicAdd(&counter, 1);
  __syncthreads();
  out[i] = table[63 - i];
}

int main() {
  float* device = nullptr;
  float out[64];
  CUDA(cudaMalloc(&device, sizeof(out)));
  Apply<<<1, 64>>>(device);
  CUDA(cudaMemcpy(out, device, sizeof(out), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) {
    REQUIRE(out[i] == static_cast<float>((63 - i) % 4 + 1) * static_cast<float>(63 - i));
  }
  int count = 0;
  CUDA(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
  REQUIRE(count == 40 + 64);

  const float changed[2] = {10, 20};
  CUDA(cudaMemcpyToSymbol(factors, changed, sizeof(changed), 2 * sizeof(float)));
  count = 0;
  CUDA(cudaMemcpyToSymbol(counter, &count, sizeof(count)));
  Apply<<<1, 64>>>(device);
  CUDA(cudaMemcpy(out, device, sizeof(out), cudaMemcpyDeviceToHost));
  REQUIRE(out[63 - 1] == 2 * 1 && out[63 - 2] == 10 * 2 && out[63 - 3] == 20 * 3);
  CUDA(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
  REQUIRE(count == 64);

  void* address = nullptr;
  std::size_t size = 0;
  CUDA(cudaGetSymbolAddress(&address, table));
  CUDA(cudaGetSymbolSize(&size, table));
  REQUIRE(size == sizeof(out));
  float element = 0;
  CUDA(cudaMemcpy(&element, static_cast<float*>(address) + 6, sizeof(element),
                  cudaMemcpyDeviceToHost));
  REQUIRE(element == 10 * 6);
  return Pass();
}
