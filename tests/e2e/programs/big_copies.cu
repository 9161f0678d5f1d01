// More than a shared window holds: 160 MB up, changed, and down again.
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr std::size_t kCount = 40U << 20;

__global__ void Scramble(unsigned* values, std::size_t count) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x) {
    values[i] = values[i] * 2'654'435'761U + 1;
  }
}

int main() {
  std::vector<unsigned> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = static_cast<unsigned>(i);
  unsigned* device = nullptr;
  CUDA(cudaMalloc(&device, kCount * sizeof(unsigned)));
  CUDA(cudaMemcpy(device, values.data(), kCount * sizeof(unsigned), cudaMemcpyHostToDevice));
  Scramble<<<64, 256>>>(device, kCount);
  CUDA(cudaMemcpy(values.data(), device, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < kCount; ++i) {
    REQUIRE(values[i] == static_cast<unsigned>(i) * 2'654'435'761U + 1);
  }
  CUDA(cudaFree(device));
  return Pass();
}
