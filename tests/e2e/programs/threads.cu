// Eight host threads, each with a stream of its own, and last errors that are each thread's own.
#include <thread>
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kCount = 10'000;

__global__ void Add(int* values, int term, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += term;
}

static void Work(int thread) {
  CUDA(cudaSetDevice(0));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  for (int round = 0; round < 5; ++round) {
    int* device = nullptr;
    CUDA(cudaMalloc(&device, kCount * sizeof(int)));
    CUDA(cudaMemsetAsync(device, 0, kCount * sizeof(int), stream));
    for (int i = 0; i < 20; ++i) {
      Add<<<(kCount + 127) / 128, 128, 0, stream>>>(device, thread + i, kCount);
    }
    if (thread % 2 == 0) {
      Add<<<1, 5000, 0, stream>>>(device, 1, kCount);
      EXPECT_CUDA(cudaGetLastError(), cudaErrorInvalidValue);
    }
    CUDA(cudaGetLastError());
    std::vector<int> result(kCount);
    CUDA(cudaMemcpyAsync(result.data(), device, kCount * sizeof(int), cudaMemcpyDeviceToHost,
                         stream));
    CUDA(cudaStreamSynchronize(stream));
    for (const int value : result) REQUIRE(value == 20 * thread + 190);
    CUDA(cudaFree(device));
  }
  CUDA(cudaStreamDestroy(stream));
}

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(Work, i);
  for (std::thread& thread : threads) thread.join();
  CUDA(cudaDeviceSynchronize());
  return Pass();
}
