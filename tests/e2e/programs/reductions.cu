// Shuffles, votes, shared and global atomics.
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kThreads = 256;
constexpr int kBuckets = 64;

__global__ void Sum(const int* values, int count, unsigned long long* total) {
  __shared__ int partial[kThreads / 32];
  int sum = 0;
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    sum += values[i];
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffU, sum, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < kThreads / 32 ? partial[threadIdx.x] : 0;
    for (int step = 4; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffU, sum, step);
    if (threadIdx.x == 0) atomicAdd(total, static_cast<unsigned long long>(sum));
  }
}

__global__ void Histogram(const int* values, int count, unsigned* buckets) {
  __shared__ unsigned local[kBuckets];
  for (unsigned i = threadIdx.x; i < kBuckets; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count;
       i += static_cast<int>(gridDim.x * blockDim.x)) {
    atomicAdd(&local[values[i] % kBuckets], 1U);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < kBuckets; i += blockDim.x) atomicAdd(&buckets[i], local[i]);
}

// An inclusive scan of a warp, and where the odd lanes stand among the odd.
__global__ void Scan(int* sums, unsigned* odd_ranks) {
  const unsigned lane = threadIdx.x % 32;
  int sum = static_cast<int>(threadIdx.x);
  for (unsigned step = 1; step < 32; step *= 2) {
    const int before = __shfl_up_sync(0xffffffffU, sum, step);
    if (lane >= step) sum += before;
  }
  sums[threadIdx.x] = sum;
  const unsigned odd = __ballot_sync(0xffffffffU, lane % 2 == 1);
  odd_ranks[threadIdx.x] = static_cast<unsigned>(__popc(odd & ((1U << lane) - 1)));
}

// Compare-and-swap loops under contention, and the other atomics.
__global__ void Extremes(const int* values, int count, int* least, int* most, float* sum) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  atomicMin(least, values[i]);
  atomicMax(most, values[i]);
  int* bits = reinterpret_cast<int*>(sum);
  int seen = *bits;
  int assumed = 0;
  do {
    assumed = seen;
    seen = atomicCAS(bits, assumed, __float_as_int(__int_as_float(assumed) + 0.5F));
  } while (seen != assumed);
}

int main() {
  constexpr int kCount = 12'345;
  std::vector<int> values(kCount);
  unsigned long long expected = 0;
  std::vector<unsigned> expected_buckets(kBuckets);
  for (int i = 0; i < kCount; ++i) {
    values[i] = i * 7919 % 1000;
    expected += static_cast<unsigned long long>(values[i]);
    ++expected_buckets[values[i] % kBuckets];
  }
  int* device = nullptr;
  unsigned long long* total = nullptr;
  unsigned* buckets = nullptr;
  CUDA(cudaMalloc(&device, kCount * sizeof(int)));
  CUDA(cudaMalloc(&total, sizeof(*total)));
  CUDA(cudaMalloc(&buckets, kBuckets * sizeof(unsigned)));
  CUDA(cudaMemcpy(device, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  CUDA(cudaMemset(total, 0, sizeof(*total)));
  CUDA(cudaMemset(buckets, 0, kBuckets * sizeof(unsigned)));
  Sum<<<6, kThreads>>>(device, kCount, total);
  Histogram<<<5, kThreads>>>(device, kCount, buckets);
  unsigned long long sum = 0;
  std::vector<unsigned> counted(kBuckets);
  CUDA(cudaMemcpy(&sum, total, sizeof(sum), cudaMemcpyDeviceToHost));
  CUDA(cudaMemcpy(counted.data(), buckets, kBuckets * sizeof(unsigned), cudaMemcpyDeviceToHost));
  REQUIRE(sum == expected);
  REQUIRE(counted == expected_buckets);

  Scan<<<1, 64>>>(device, buckets);
  int sums[64];
  unsigned ranks[64];
  CUDA(cudaMemcpy(sums, device, sizeof(sums), cudaMemcpyDeviceToHost));
  CUDA(cudaMemcpy(ranks, buckets, sizeof(ranks), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) {
    int prefix = 0;
    for (int j = i / 32 * 32; j <= i; ++j) prefix += j;
    REQUIRE(sums[i] == prefix);
    REQUIRE(ranks[i] == static_cast<unsigned>(i % 32 / 2));
  }

  CUDA(cudaMemcpy(device, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  int extremes[2] = {1 << 30, -1};
  int* places = nullptr;
  float* half_count = nullptr;
  CUDA(cudaMalloc(&places, sizeof(extremes)));
  CUDA(cudaMalloc(&half_count, sizeof(float)));
  CUDA(cudaMemcpy(places, extremes, sizeof(extremes), cudaMemcpyHostToDevice));
  CUDA(cudaMemset(half_count, 0, sizeof(float)));
  Extremes<<<(kCount + 127) / 128, 128>>>(device, kCount, places, places + 1, half_count);
  float half = 0;
  CUDA(cudaMemcpy(extremes, places, sizeof(extremes), cudaMemcpyDeviceToHost));
  CUDA(cudaMemcpy(&half, half_count, sizeof(half), cudaMemcpyDeviceToHost));
  REQUIRE(extremes[0] == 0 && extremes[1] == 999);
  REQUIRE(half == kCount * 0.5F);
  return Pass();
}
