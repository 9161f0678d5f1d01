// __managed__ variables, named by the program and by kernels alike.
#include "tests/e2e/programs/check.h"

__managed__ int counter = 7;
__managed__ float table[1000];

__global__ void Count() { atomicAdd(&counter, 1); }

// By name and by address: the same variable.
__global__ void Scale(float* values, float factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 1000) return;
  values[i] *= factor;
  if (i == 999) table[0] = -1;
}

int main() {
  Count<<<1, 32>>>();
  CUDA(cudaDeviceSynchronize());
  REQUIRE(counter == 39);

  for (int i = 0; i < 1000; ++i) table[i] = static_cast<float>(i);
  Scale<<<4, 256>>>(table, 2.0f);
  Scale<<<4, 256>>>(table, 2.0f);
  CUDA(cudaStreamSynchronize(nullptr));
  REQUIRE(table[0] == -1);
  for (int i = 1; i < 1000; ++i) REQUIRE(table[i] == 4.0f * static_cast<float>(i));

  counter = 100;
  table[5] = 1;
  Count<<<1, 1>>>();
  Scale<<<4, 256>>>(table, 3.0f);
  float copied = 0;
  CUDA(cudaMemcpy(&copied, &table[5], sizeof copied, cudaMemcpyDefault));
  REQUIRE(copied == 3 && table[5] == 3 && counter == 101);

  CUDA(cudaMemset(table, 0, sizeof table));
  Scale<<<4, 256>>>(table, 3.0f);
  CUDA(cudaDeviceSynchronize());
  REQUIRE(table[0] == -1 && table[5] == 0 && table[999] == 0);

  CUDA(cudaDeviceReset());
  REQUIRE(counter == 7 && table[0] == 0);
  Count<<<1, 1>>>();
  CUDA(cudaDeviceSynchronize());
  REQUIRE(counter == 8);
  return Pass();
}
