// Order within a stream, order between streams by events, queries, and times.
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kCount = 1 << 16;
constexpr int kThreads = 256;

__global__ void Set(int* values, int value) {
  values[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void MultiplyAdd(int* values, int factor, int term) {
  int& value = values[blockIdx.x * blockDim.x + threadIdx.x];
  value = value * factor + term;
}

__global__ void Copy(const int* from, int* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

static void RequireAll(const int* device, int expected) {
  std::vector<int> values(kCount);
  CUDA(cudaMemcpy(values.data(), device, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  for (const int value : values) REQUIRE(value == expected);
}

// An event that was waited for is complete to every later call.
static void RequireCompleteOnceAwaited(int* device, cudaEvent_t start, cudaEvent_t end) {
  for (int i = 0; i < 200; ++i) {
    CUDA(cudaEventRecord(start));
    Set<<<1, kThreads>>>(device, i);
    CUDA(cudaEventRecord(end));
    CUDA(cudaEventSynchronize(end));
    float elapsed_ms = -1;
    CUDA(cudaEventElapsedTime(&elapsed_ms, start, end));
    REQUIRE(elapsed_ms >= 0);
  }
}

int main() {
  int* first = nullptr;
  int* second = nullptr;
  CUDA(cudaMalloc(&first, kCount * sizeof(int)));
  CUDA(cudaMalloc(&second, kCount * sizeof(int)));
  cudaStream_t producer = nullptr;
  cudaStream_t consumer = nullptr;
  CUDA(cudaStreamCreate(&producer));
  CUDA(cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking));
  cudaEvent_t start = nullptr;
  cudaEvent_t ready = nullptr;
  cudaEvent_t end = nullptr;
  CUDA(cudaEventCreate(&start));
  CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
  CUDA(cudaEventCreate(&end));

  CUDA(cudaEventRecord(start, producer));
  Set<<<kCount / kThreads, kThreads, 0, producer>>>(first, 1);
  int expected = 1;
  for (int i = 0; i < 20; ++i) {
    MultiplyAdd<<<kCount / kThreads, kThreads, 0, producer>>>(first, 3, i);
    expected = static_cast<int>(static_cast<unsigned>(expected) * 3U + static_cast<unsigned>(i));
  }
  CUDA(cudaEventRecord(ready, producer));
  CUDA(cudaStreamWaitEvent(consumer, ready, 0));
  Copy<<<kCount / kThreads, kThreads, 0, consumer>>>(first, second);
  CUDA(cudaEventRecord(end, consumer));
  CUDA(cudaEventSynchronize(end));
  CUDA(cudaEventQuery(end));
  CUDA(cudaEventQuery(ready));
  CUDA(cudaStreamSynchronize(producer));
  CUDA(cudaStreamQuery(producer));
  RequireAll(second, expected);

  float elapsed_ms = -1;
  CUDA(cudaEventElapsedTime(&elapsed_ms, start, end));
  REQUIRE(elapsed_ms >= 0 && elapsed_ms < 60'000);
  float backwards_ms = 1;
  CUDA(cudaEventElapsedTime(&backwards_ms, end, start));
  REQUIRE(backwards_ms <= 0);

  cudaEvent_t unused = nullptr;
  CUDA(cudaEventCreate(&unused));
  CUDA(cudaEventQuery(unused));
  EXPECT_CUDA(cudaEventElapsedTime(&elapsed_ms, start, unused), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaEventElapsedTime(&elapsed_ms, start, ready), cudaErrorInvalidResourceHandle);
  (void)cudaGetLastError();

  RequireCompleteOnceAwaited(first, start, end);

  for (cudaEvent_t event : {start, ready, end, unused}) CUDA(cudaEventDestroy(event));
  CUDA(cudaStreamDestroy(producer));
  CUDA(cudaStreamDestroy(consumer));
  return Pass();
}
