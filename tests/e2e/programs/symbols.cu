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

// Takes its time.
__global__ void SetSlowly(volatile int* value) {
  for (int i = 0; i <= 20'000; ++i) *value = i;
}

// A pinned source is read when the stream comes to the copy.
static void CopiesFollowTheStream() {
  int* pinned = nullptr;
  cudaStream_t stream = nullptr;
  CUDA(cudaMallocHost(&pinned, sizeof(int)));
  CUDA(cudaStreamCreate(&stream));
  SetSlowly<<<1, 1, 0, stream>>>(pinned);
  CUDA(cudaMemcpyToSymbolAsync(counter, pinned, sizeof(int), 0, cudaMemcpyHostToDevice, stream));
  CUDA(cudaStreamSynchronize(stream));
  int count = 0;
  CUDA(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
  REQUIRE(count == 20'000);
  CUDA(cudaFreeHost(pinned));
  CUDA(cudaStreamDestroy(stream));
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
  CopiesFollowTheStream();
  return Pass();
}
