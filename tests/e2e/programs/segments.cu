// Memory beyond the first gigabyte of addresses: in pieces and in one piece, on the GPU and pinned.
#include <cstdint>
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

// Each of `count` words from `begin` on, which are `stride` words apart, gets a value of its own.
__global__ void Mark(std::uint64_t* begin, std::size_t count, std::size_t stride,
                     std::uint64_t seed) {
  for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) begin[i * stride] = seed + i;
}

__global__ void CountMarked(const std::uint64_t* begin, std::size_t count, std::size_t stride,
                            std::uint64_t seed, unsigned long long* marked) {
  for (std::size_t i = threadIdx.x; i < count; i += blockDim.x)
    if (begin[i * stride] == seed + i) atomicAdd(marked, 1ull);
}

// A piece of memory with marks from end to end, a megabyte apart.
struct Piece {
  std::uint64_t* begin = nullptr;
  std::size_t bytes = 0;

  std::size_t marks() const { return bytes / kMegabyte; }
  std::uint64_t seed() const { return reinterpret_cast<std::uint64_t>(begin); }
  void SetMarks() const { Mark<<<1, 128>>>(begin, marks(), kMegabyte / sizeof *begin, seed()); }
  void CheckMarks(unsigned long long* counter) const {
    CUDA(cudaMemset(counter, 0, sizeof *counter));
    CountMarked<<<1, 128>>>(begin, marks(), kMegabyte / sizeof *begin, seed(), counter);
    unsigned long long marked = 0;
    CUDA(cudaMemcpy(&marked, counter, sizeof marked, cudaMemcpyDeviceToHost));
    REQUIRE(marked == marks());
  }
};

static Piece Allocate(std::size_t bytes) {
  Piece piece;
  piece.bytes = bytes;
  CUDA(cudaMalloc(&piece.begin, bytes));
  return piece;
}

static void CheckPieces(const std::vector<Piece>& pieces, unsigned long long* counter) {
  for (const Piece& piece : pieces) piece.SetMarks();
  for (const Piece& piece : pieces) piece.CheckMarks(counter);
  for (const Piece& piece : pieces) CUDA(cudaFree(piece.begin));
}

static void Pinned() {
  std::vector<std::uint64_t*> blocks;
  for (const std::size_t megabytes : {1, 40, 40, 96}) {
    std::uint64_t* block = nullptr;
    CUDA(cudaMallocHost(&block, megabytes * kMegabyte));
    Mark<<<1, 128>>>(block, megabytes, kMegabyte / sizeof *block, megabytes);
    CUDA(cudaDeviceSynchronize());
    for (std::size_t i = 0; i < megabytes; ++i)
      REQUIRE(block[i * (kMegabyte / sizeof *block)] == megabytes + i);
    blocks.push_back(block);
  }
  for (std::uint64_t* block : blocks) CUDA(cudaFreeHost(block));
}

int main() {
  unsigned long long* counter = nullptr;
  CUDA(cudaMalloc(&counter, sizeof *counter));
  CheckPieces(std::vector<Piece>{Allocate(270 * kMegabyte), Allocate(270 * kMegabyte),
                                 Allocate(270 * kMegabyte), Allocate(270 * kMegabyte)},
              counter);
  CheckPieces({Allocate(1080 * kMegabyte)}, counter);
  Pinned();
  // More than there is fails, and only that.
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  void* too_much = nullptr;
  REQUIRE(cudaMalloc(&too_much, total_bytes + kMegabyte) == cudaErrorMemoryAllocation);
  REQUIRE(cudaGetLastError() == cudaErrorMemoryAllocation);
  CheckPieces({Allocate(kMegabyte)}, counter);
  return Pass();
}
