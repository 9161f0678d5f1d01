// Stream-ordered allocation: memory that is reused while the GPU is still at work.
#include <cstdint>

#include "tests/e2e/programs/check.h"

__global__ void Fill(unsigned* values, unsigned count, unsigned seed) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    values[i] = i * 2654435761u + seed;
}

__global__ void Sum(const unsigned* values, unsigned count, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    mine += values[i];
  atomicAdd(sum, mine);
}

static unsigned long long Expected(unsigned count, unsigned seed) {
  unsigned long long sum = 0;
  for (unsigned i = 0; i < count; ++i) sum += i * 2654435761u + seed;
  return sum;
}

static std::uint64_t Attribute(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  std::uint64_t value = 0;
  CUDA(cudaMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

// Every round allocates, uses and frees while earlier rounds may still run; two streams of them.
static void Rounds(cudaMemPool_t pool) {
  constexpr int kRounds = 200;
  cudaStream_t streams[2];
  unsigned long long* sums = nullptr;
  CUDA(cudaMallocManaged(&sums, 2 * kRounds * sizeof *sums));
  for (cudaStream_t& stream : streams)
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 0; round < kRounds; ++round) {
    for (int s = 0; s < 2; ++s) {
      const unsigned count = 1000u + 977u * static_cast<unsigned>((round * 7 + s) % 50);
      unsigned* values = nullptr;
      CUDA(cudaMallocFromPoolAsync(&values, count * sizeof *values, pool, streams[s]));
      Fill<<<4, 128, 0, streams[s]>>>(values, count, static_cast<unsigned>(2 * round + s));
      sums[2 * round + s] = 0;
      Sum<<<4, 128, 0, streams[s]>>>(values, count, &sums[2 * round + s]);
      CUDA(cudaFreeAsync(values, streams[s]));
    }
  }
  CUDA(cudaDeviceSynchronize());
  for (int round = 0; round < kRounds; ++round) {
    for (int s = 0; s < 2; ++s) {
      const unsigned count = 1000u + 977u * static_cast<unsigned>((round * 7 + s) % 50);
      REQUIRE(sums[2 * round + s] == Expected(count, static_cast<unsigned>(2 * round + s)));
    }
  }
  for (cudaStream_t stream : streams) CUDA(cudaStreamDestroy(stream));
  CUDA(cudaFree(sums));
}

// A pool of limited size: the second stream has to wait for the first one's memory. The limit is a
// multiple of 32 MiB, by which drivers' pools grow.
static void Dependencies() {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  properties.maxSize = std::size_t{32} << 20;
  cudaMemPool_t pool = nullptr;
  CUDA(cudaMemPoolCreate(&pool, &properties));
  constexpr unsigned kCount = 8u << 20;  // 32 MiB
  cudaStream_t first;
  cudaStream_t second;
  CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  unsigned long long* sums = nullptr;
  CUDA(cudaMallocManaged(&sums, 2 * sizeof *sums));
  sums[0] = sums[1] = 0;
  unsigned* one = nullptr;
  CUDA(cudaMallocFromPoolAsync(&one, kCount * sizeof *one, pool, first));
  Fill<<<4, 128, 0, first>>>(one, kCount, 1);
  Sum<<<4, 128, 0, first>>>(one, kCount, &sums[0]);
  CUDA(cudaFreeAsync(one, first));
  unsigned* two = nullptr;
  CUDA(cudaMallocFromPoolAsync(&two, kCount * sizeof *two, pool, second));
  Fill<<<4, 128, 0, second>>>(two, kCount, 2);
  Sum<<<4, 128, 0, second>>>(two, kCount, &sums[1]);
  void* third = nullptr;
  EXPECT_CUDA(cudaMallocFromPoolAsync(&third, std::size_t{1} << 30, pool, second),
              cudaErrorMemoryAllocation);
  (void)cudaGetLastError();
  CUDA(cudaFreeAsync(two, second));
  CUDA(cudaStreamSynchronize(second));
  CUDA(cudaStreamSynchronize(first));
  REQUIRE(sums[0] == Expected(kCount, 1));
  REQUIRE(sums[1] == Expected(kCount, 2));
  CUDA(cudaMemPoolDestroy(pool));
  CUDA(cudaStreamDestroy(first));
  CUDA(cudaStreamDestroy(second));
  CUDA(cudaFree(sums));
}

static void Statistics(cudaMemPool_t pool) {
  REQUIRE(Attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
  REQUIRE(Attribute(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
  std::size_t free_before = 0;
  std::size_t total = 0;
  CUDA(cudaMemGetInfo(&free_before, &total));
  std::uint64_t threshold = ~std::uint64_t{0};
  CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  void* block = nullptr;
  CUDA(cudaMallocAsync(&block, 30 << 20, nullptr));
  REQUIRE(Attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 30u << 20);
  CUDA(cudaFreeAsync(block, nullptr));
  CUDA(cudaDeviceSynchronize());
  REQUIRE(Attribute(pool, cudaMemPoolAttrUsedMemCurrent) == 0);
  REQUIRE(Attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= 30u << 20);
  std::size_t free_now = 0;
  CUDA(cudaMemGetInfo(&free_now, &total));
  REQUIRE(free_before - free_now >= 30u << 20);
  CUDA(cudaMemPoolTrimTo(pool, 0));
  REQUIRE(Attribute(pool, cudaMemPoolAttrReservedMemCurrent) == 0);
  CUDA(cudaMemGetInfo(&free_now, &total));
  REQUIRE(free_now == free_before);
  threshold = 0;
  CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

int main() {
  int supported = 0;
  CUDA(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  REQUIRE(supported == 1);
  cudaMemPool_t pool = nullptr;
  CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  Statistics(pool);
  Rounds(pool);
  Dependencies();
  return Pass();
}
