// What kernels print stands in the program's output where a synchronising call brings it.
#include "tests/e2e/programs/check.h"

__global__ void Greet(int from) {
  if (threadIdx.x == 0) printf("kernel %d, block %d of %s\n", from, blockIdx.x, "three");
}

int main() {
  std::printf("before\n");
  Greet<<<1, 64>>>(1);
  CUDA(cudaDeviceSynchronize());
  std::printf("between\n");
  for (int i = 2; i < 5; ++i) Greet<<<1, 32>>>(i);
  CUDA(cudaStreamSynchronize(nullptr));
  return Pass();
}
