// Two GPUs that have pointers into each other's memory. Its test takes the GPUs away while the
// program waits for the pipe that its argument names.
#include <vector>

#include "tests/e2e/driven/wait.h"
#include "tests/e2e/programs/check.h"

constexpr int kGpus = 2;
constexpr int kBlock = 256;
constexpr int kCount = 8 << 20;  // integers on each GPU: 32 MiB
constexpr std::size_t kBytes = kCount * sizeof(int);

__global__ void Fill(int* to, int first) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  to[i] = first + i;
}

// `holder` is where the other GPU keeps the address of its own memory.
__global__ void AddToPeers(int* const* holder) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  (*holder)[i] += 1;
}

struct Gpu {
  int* memory = nullptr;
  int** holder = nullptr;
};

static void AddToAll(const Gpu* gpus) {
  for (int i = 0; i < kGpus; ++i) {
    CUDA(cudaSetDevice(i));
    AddToPeers<<<kCount / kBlock, kBlock>>>(gpus[1 - i].holder);
    CUDA(cudaGetLastError());
  }
  for (int i = 0; i < kGpus; ++i) {
    CUDA(cudaSetDevice(i));
    CUDA(cudaDeviceSynchronize());
  }
}

int main(int count, char** arguments) {
  REQUIRE(count == 2);
  Gpu gpus[kGpus];
  for (int i = 0; i < kGpus; ++i) {
    CUDA(cudaSetDevice(i));
    CUDA(cudaMalloc(&gpus[i].memory, kBytes));
    CUDA(cudaMalloc(&gpus[i].holder, sizeof(int*)));
    CUDA(cudaMemcpy(gpus[i].holder, &gpus[i].memory, sizeof(int*), cudaMemcpyHostToDevice));
    Fill<<<kCount / kBlock, kBlock>>>(gpus[i].memory, 1000 * i);
    CUDA(cudaDeviceSynchronize());
  }
  AddToAll(gpus);
  Wait(arguments[1]);
  AddToAll(gpus);
  std::vector<int> values(kCount);
  for (int i = 0; i < kGpus; ++i) {
    CUDA(cudaMemcpy(values.data(), gpus[i].memory, kBytes, cudaMemcpyDeviceToHost));
    for (int j = 0; j < kCount; ++j)
      REQUIRE(values[static_cast<std::size_t>(j)] == 1000 * i + j + 2);
  }
  return Pass();
}
