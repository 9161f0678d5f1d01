// CUDA_LAUNCH_BLOCKING=1: what a call puts on a stream is done when the call returns, and the error
// that it meets is the call's own. So a kernel that waits for what the program does next waits for
// ever.
#include "tests/e2e/programs/check.h"

constexpr int kRounds = 5;

// Slow enough that a launch which did not wait would be found out.
__global__ void SlowlySet(volatile int* word, int value) {
  const long long begin = clock64();
  while (clock64() - begin < 1'000'000) {
  }
  *word = value;
}

__global__ void Write(int* to) { *to = 1; }

static void LaunchesWait(cudaStream_t stream) {
  int* word = nullptr;
  CUDA(cudaMallocHost(&word, sizeof *word));
  for (int round = 1; round <= kRounds; ++round) {
    SlowlySet<<<1, 1, 0, stream>>>(word, round);
    REQUIRE(*static_cast<volatile int*>(word) == round);
    CUDA(cudaStreamQuery(stream));
  }
  CUDA(cudaFreeHost(word));
}

static void WorkOfManyKindsIsDoneInOrder() {
  int* pinned = nullptr;
  int* device = nullptr;
  cudaStream_t stream;
  CUDA(cudaMallocHost(&pinned, sizeof *pinned));
  CUDA(cudaMalloc(&device, sizeof *device));
  CUDA(cudaStreamCreate(&stream));
  CUDA(cudaMemsetAsync(device, 0, sizeof *device, stream));
  Write<<<1, 1, 0, stream>>>(device);
  CUDA(cudaMemcpyAsync(pinned, device, sizeof *pinned, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaLaunchHostFunc(
      stream, [](void* word) { *static_cast<int*>(word) += 1; }, pinned));
  CUDA(cudaMemcpyAsync(device, pinned, sizeof *pinned, cudaMemcpyHostToDevice, stream));
  CUDA(cudaStreamSynchronize(stream));
  REQUIRE(*pinned == 2);
  CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(device));
  CUDA(cudaFreeHost(pinned));
}

static void AFailureIsTheLaunchsOwn() {
  int* good = nullptr;
  CUDA(cudaMalloc(&good, sizeof *good));
  Write<<<1, 1>>>(good);
  CUDA(cudaGetLastError());
  Write<<<1, 1>>>(reinterpret_cast<int*>(16));
  EXPECT_CUDA(cudaGetLastError(), cudaErrorIllegalAddress);
}

int main() {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  LaunchesWait(nullptr);
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  LaunchesWait(stream);
  CUDA(cudaStreamDestroy(stream));
  WorkOfManyKindsIsDoneInOrder();
  AFailureIsTheLaunchsOwn();
  return Pass();
}
