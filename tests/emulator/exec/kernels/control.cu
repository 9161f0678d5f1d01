#include <cooperative_groups.h>

#include "kernels/per_thread.h"

extern "C" {

__global__ void diverge(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = Diverge(in[i]);
}

__global__ void collatz(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = Collatz(in[i]);
}

__global__ void barrier_loop(const float* in, float* out) {
  __shared__ float sums[256];
  const int t = threadIdx.x;
  sums[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int s = 128; s > 0; s >>= 1) {
    if (t < s) sums[t] += sums[t + s];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}

// Half of the warps leave before the barriers of the others.
__global__ void early_exit(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (threadIdx.x >= 64) return;
  for (int i = 0; i < 10; i++) {
    atomicAdd(&count, 1);
    __syncthreads();
    if (threadIdx.x == i) out[blockIdx.x * 10 + i] = count;
    __syncthreads();
  }
}

__global__ void barrier_reductions(const int* in, int* out) {
  const int v = in[threadIdx.x];
  const int count = __syncthreads_count(v & 1);
  const int all = __syncthreads_and(v < 1000);
  const int any = __syncthreads_or(v == 77);
  out[threadIdx.x] = count * 4 + all * 2 + any;
}

// A producer warp and a consumer warp meet at named barriers, not all of the block.
__global__ void named_barriers(int* out) {
  __shared__ int slot[32];
  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x / 32;
  int sum = 0;
  for (int i = 0; i < 5; i++) {
    if (warp == 0) {
      asm volatile("bar.sync 2, 64;" ::: "memory");
      slot[lane] = lane * 100 + i;
      asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else if (warp == 1) {
      asm volatile("bar.arrive 2, 64;" ::: "memory");
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum += slot[31 - lane];
    }
  }
  if (warp == 1) out[lane] = sum;
}

// Lanes of one warp compete for a lock: whoever has it must get on while the others spin.
__global__ void lock(int* mutex, int* count) {
  while (atomicCAS(mutex, 0, 1) != 0) {
  }
  *reinterpret_cast<volatile int*>(count) += 1;
  __threadfence();
  atomicExch(mutex, 0);
}

// Each block waits for the one before it.
__global__ void chain(volatile int* flags, int* out) {
  if (threadIdx.x == 0) {
    while (blockIdx.x > 0 && flags[blockIdx.x - 1] == 0) {
    }
    out[blockIdx.x] = blockIdx.x == 0 ? 1 : out[blockIdx.x - 1] + 2;
    __threadfence();
    flags[blockIdx.x] = 1;
  }
}

// One thread waits for somebody outside the grid, the others for it.
__global__ void outside(volatile int* asked, volatile int* answer, int* out) {
  __syncthreads();
  if (threadIdx.x == 0) {
    *asked = 1;
    while (*answer == 0) {
    }
  }
  __syncthreads();
  out[threadIdx.x] = *answer + static_cast<int>(threadIdx.x);
}

// Warps of one block hand a token around.
__global__ void ring(int* out) {
  __shared__ volatile int turn;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x == 0) turn = 0;
  __syncthreads();
  for (int round = 0; round < 3; round++) {
    if (threadIdx.x % 32 == 0) {
      while (turn != round * 4 + warp) {
      }
      out[round * 4 + warp] = warp + 1;
      __threadfence_block();
      turn = turn + 1;
    }
    __syncwarp();
  }
}

__global__ void fails_assert_like(int* out, int limit) {
  if (static_cast<int>(threadIdx.x) == limit) __trap();
  out[threadIdx.x] = 1;
}

// The second block waits for what never comes, the first one fails when the second one waits or
// seems never to run.
__global__ void fails_beside_a_waiter(volatile int* waits, volatile int* never) {
  if (blockIdx.x == 1) {
    *waits = 1;
    while (*never == 0) {
    }
    return;
  }
  for (int polls = 0; *waits == 0 && polls < 100000; polls++) {
  }
  __trap();
}

// Of two warps the first waits for the second, which fails.
__global__ void fails_before_a_barrier() {
  if (threadIdx.x >= 32) __trap();
  __syncthreads_count(1);
}

// Every block reads what its neighbour wrote in the round before.
__global__ void cooperative(int* cells, int rounds) {
  const auto grid = cooperative_groups::this_grid();
  const int b = blockIdx.x;
  const int n = gridDim.x;
  for (int round = 0; round < rounds; round++) {
    const int* from = cells + round % 2 * n;
    int* to = cells + (round + 1) % 2 * n;
    if (threadIdx.x == 0) to[b] = from[(b + 1) % n] + 1;
    grid.sync();
  }
}
}
