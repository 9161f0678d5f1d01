// Attacks with a kernel of its own. `read ADDRESS` says what lies there, `write ADDRESS` writes
// zeros there: each ends with 0 if the attack succeeds, and with 3 if the GPU refuses. `scan
// MEGABYTES` looks for the secret of secret_keeper.cu in new memory of its own.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/e2e/programs/check.h"

constexpr std::uint64_t kSecret = 0x5ec2e75ec2e75ec2;
constexpr int kRefused = 3;

__global__ void Read(const std::uint64_t* there, std::uint64_t* found) { *found = *there; }

__global__ void Write(std::uint64_t* there) { *there = 0; }

__global__ void Scan(const std::uint64_t* words, std::size_t count, unsigned* found) {
  const std::size_t step = gridDim.x * blockDim.x;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
    if (words[i] == kSecret) atomicAdd(found, 1);
  }
}

int Attack(const std::string& how, std::uint64_t* there) {
  std::uint64_t* found = nullptr;
  CUDA(cudaMalloc(&found, sizeof *found));
  if (how == "read") {
    Read<<<1, 1>>>(there, found);
  } else {
    Write<<<1, 1>>>(there);
  }
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) {
    std::printf("refused: %s\n", cudaGetErrorName(error));
    return kRefused;
  }
  std::uint64_t value = 0;
  CUDA(cudaMemcpy(&value, found, sizeof value, cudaMemcpyDeviceToHost));
  std::printf("%s %llx\n", value == kSecret ? "stolen" : "done", (unsigned long long)value);
  return 0;
}

int Search(std::size_t megabytes) {
  const std::size_t bytes = megabytes << 20;
  std::uint64_t* words = nullptr;
  unsigned* found = nullptr;
  CUDA(cudaMalloc(&words, bytes));
  CUDA(cudaMalloc(&found, sizeof *found));
  CUDA(cudaMemset(found, 0, sizeof *found));
  Scan<<<64, 256>>>(words, bytes / sizeof *words, found);
  unsigned count = 0;
  CUDA(cudaMemcpy(&count, found, sizeof count, cudaMemcpyDeviceToHost));
  std::printf("found %u\n", count);
  return count == 0 ? 0 : 1;
}

int main(int count, char** arguments) {
  REQUIRE(count == 3);
  const std::string how = arguments[1];
  const std::uint64_t number = std::strtoull(arguments[2], nullptr, 10);
  if (how == "scan") return Search(number);
  return Attack(how, reinterpret_cast<std::uint64_t*>(number));
}
