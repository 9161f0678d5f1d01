// Barriers that hand work from some warps of a block to others, and a grid that waits for itself.
#include <cooperative_groups.h>

#include <cuda/barrier>
#include <vector>

#include "tests/e2e/programs/check.h"

namespace cg = cooperative_groups;

constexpr int kThreads = 128;
constexpr int kRounds = 50;

// The first half of a block writes what the second half adds up, through one buffer.
// Its barriers are made by init().
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void HandOver(int* sums) {
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ Barrier full;
  __shared__ Barrier empty;
  __shared__ int buffer[kThreads / 2];
  if (threadIdx.x == 0) {
    init(&full, kThreads);
    init(&empty, kThreads);
  }
  __syncthreads();
  const int half = kThreads / 2;
  const int me = static_cast<int>(threadIdx.x) % half;
  if (static_cast<int>(threadIdx.x) < half) {
    for (int round = 0; round < kRounds; ++round) {
      empty.arrive_and_wait();
      buffer[me] = round * me;
      static_cast<void>(full.arrive());
    }
  } else {
    int sum = 0;
    for (int round = 0; round < kRounds; ++round) {
      static_cast<void>(empty.arrive());
      full.arrive_and_wait();
      sum += buffer[half - 1 - me];
    }
    sums[blockIdx.x * half + me] = sum;
  }
}

// Each round every block reads what its neighbour wrote in the round before.
__global__ void Ring(int* values, int rounds) {
  cg::grid_group grid = cg::this_grid();
  const unsigned blocks = gridDim.x;
  for (int round = 0; round < rounds; ++round) {
    const int* before = values + (round % 2) * blocks;
    int* after = values + ((round + 1) % 2) * blocks;
    if (threadIdx.x == 0) after[blockIdx.x] = before[(blockIdx.x + 1) % blocks] + 1;
    grid.sync();
  }
}

int main() {
  constexpr int kBlocks = 5;
  int* device = nullptr;
  CUDA(cudaMalloc(&device, 1024 * sizeof(int)));
  HandOver<<<kBlocks, kThreads>>>(device);
  std::vector<int> sums(kBlocks * kThreads / 2);
  CUDA(cudaMemcpy(sums.data(), device, sums.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < static_cast<int>(sums.size()); ++i) {
    const int source = kThreads / 2 - 1 - i % (kThreads / 2);
    REQUIRE(sums[i] == source * kRounds * (kRounds - 1) / 2);
  }

  int blocks = 48;
  int rounds = 101;
  std::vector<int> ring(2 * blocks);
  for (int i = 0; i < blocks; ++i) ring[i] = 1000 * i;
  CUDA(cudaMemcpy(device, ring.data(), ring.size() * sizeof(int), cudaMemcpyHostToDevice));
  void* arguments[] = {&device, &rounds};
  CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&Ring), dim3(blocks), dim3(96),
                                   arguments, 0, nullptr));
  CUDA(cudaMemcpy(ring.data(), device, ring.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < blocks; ++i) {
    REQUIRE(ring[blocks + i] == 1000 * ((i + rounds) % blocks) + rounds);
  }
  return Pass();
}
