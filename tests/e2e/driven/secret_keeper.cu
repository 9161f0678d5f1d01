// Keeps secrets in device and pinned memory, says where they are, and looks whether they have
// changed when the test writes to the pipe: `secret_keeper PIPE TIMES`.
#include <cstdint>
#include <cstdlib>

#include "tests/e2e/driven/wait.h"
#include "tests/e2e/programs/check.h"

constexpr unsigned kWords = 1 << 18;  // of 8 bytes
constexpr std::uint64_t kSecret = 0x5ec2e75ec2e75ec2;

__global__ void Fill(std::uint64_t* words) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  words[i] = kSecret;
}

__global__ void CountChanged(const std::uint64_t* words, unsigned* changed) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (words[i] != kSecret) atomicAdd(changed, 1);
}

int main(int count, char** arguments) {
  REQUIRE(count == 3);
  std::uint64_t* device = nullptr;
  std::uint64_t* pinned = nullptr;
  unsigned* changed = nullptr;
  CUDA(cudaMalloc(&device, kWords * sizeof(std::uint64_t)));
  CUDA(cudaMalloc(&changed, sizeof(unsigned)));
  CUDA(cudaMallocHost(&pinned, kWords * sizeof(std::uint64_t)));
  Fill<<<kWords / 256, 256>>>(device);
  Fill<<<kWords / 256, 256>>>(pinned);
  CUDA(cudaDeviceSynchronize());
  std::printf("device %llu\npinned %llu\n", reinterpret_cast<unsigned long long>(device),
              reinterpret_cast<unsigned long long>(pinned));
  std::fflush(stdout);
  const int times = std::atoi(arguments[2]);
  for (int i = 1; i <= times; ++i) {
    Wait(arguments[1]);
    for (const std::uint64_t* const words : {device, pinned}) {
      CUDA(cudaMemset(changed, 0, sizeof(unsigned)));
      CountChanged<<<kWords / 256, 256>>>(words, changed);
      unsigned found = 0;
      CUDA(cudaMemcpy(&found, changed, sizeof found, cudaMemcpyDeviceToHost));
      REQUIRE(found == 0);
    }
    std::printf("intact %d\n", i);
    std::fflush(stdout);
  }
  return Pass();
}
