// The legacy default stream waits for all blocking streams, and they for it. Built with
// --default-stream per-thread too, where only explicit waiting orders.
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kCount = 1 << 14;
constexpr int kThreads = 128;

// Long enough that an order that is merely lucky shows.
__global__ void SlowAdd(float* values, float term) {
  float value = values[blockIdx.x * blockDim.x + threadIdx.x];
  for (int i = 0; i < 300; ++i) value += term;
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void Double(float* values) { values[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }

// Takes its time.
static void FillSlowly(void* values) {
  for (int round = 0; round < 500; ++round)
    for (int i = 0; i < kCount; ++i) static_cast<volatile float*>(values)[i] = 3;
}

// Functions of the program are work of their stream too.
static void BlockingStreamsFollowFunctions(float* values, cudaStream_t blocking) {
  float* pinned = nullptr;
  CUDA(cudaMallocHost(&pinned, kCount * sizeof(float)));
  CUDA(cudaLaunchHostFunc(cudaStreamLegacy, FillSlowly, pinned));
  CUDA(cudaMemcpyAsync(values, pinned, kCount * sizeof(float), cudaMemcpyHostToDevice, blocking));
  std::vector<float> result(kCount);
  CUDA(cudaMemcpyAsync(result.data(), values, kCount * sizeof(float), cudaMemcpyDeviceToHost,
                       blocking));
  CUDA(cudaStreamSynchronize(blocking));
  for (const float value : result) REQUIRE(value == 3);
  CUDA(cudaFreeHost(pinned));
}

int main() {
  constexpr int kBlocks = kCount / kThreads;
  float* values = nullptr;
  CUDA(cudaMalloc(&values, kCount * sizeof(float)));
  CUDA(cudaMemset(values, 0, kCount * sizeof(float)));
  cudaStream_t a = nullptr;
  cudaStream_t b = nullptr;
  CUDA(cudaStreamCreate(&a));
  CUDA(cudaStreamCreate(&b));
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  CUDA(cudaStreamSynchronize(nullptr));
#endif
  SlowAdd<<<kBlocks, kThreads, 0, a>>>(values, 1);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  CUDA(cudaStreamSynchronize(a));
#endif
  Double<<<kBlocks, kThreads>>>(values);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  CUDA(cudaStreamSynchronize(cudaStreamPerThread));
#endif
  SlowAdd<<<kBlocks, kThreads, 0, b>>>(values, 1);
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  CUDA(cudaStreamSynchronize(b));
#endif
  Double<<<kBlocks, kThreads>>>(values);
  std::vector<float> result(kCount);
  CUDA(cudaMemcpy(result.data(), values, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  for (const float value : result) REQUIRE(value == (300.0F * 2 + 300) * 2);
  BlockingStreamsFollowFunctions(values, a);
  CUDA(cudaStreamDestroy(a));
  CUDA(cudaStreamDestroy(b));
  CUDA(cudaDeviceSynchronize());
  return Pass();
}
