// The address of a variable stays good while the program moves from GPU to GPU. Its test does
// that while the program waits for the pipe that its argument names.
#include "tests/e2e/driven/wait.h"
#include "tests/e2e/programs/check.h"

__device__ int table[256];

__global__ void Double(int* values) { values[threadIdx.x] *= 2; }

int main(int count, char** arguments) {
  REQUIRE(count == 2);
  void* address = nullptr;
  CUDA(cudaGetSymbolAddress(&address, table));
  int* const values = static_cast<int*>(address);
  int host[256];
  for (int i = 0; i < 256; ++i) host[i] = i;
  CUDA(cudaMemcpy(values, host, sizeof(host), cudaMemcpyHostToDevice));
  Double<<<1, 256>>>(values);
  CUDA(cudaDeviceSynchronize());
  Wait(arguments[1]);
  Double<<<1, 256>>>(values);
  CUDA(cudaMemcpyFromSymbol(host, table, sizeof(host)));
  for (int i = 0; i < 256; ++i) REQUIRE(host[i] == 4 * i);
  CUDA(cudaMemset(values + 128, 0, 128 * sizeof(int)));
  CUDA(cudaMemcpy(host, values, sizeof(host), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 256; ++i) REQUIRE(host[i] == (i < 128 ? 4 * i : 0));
  void* again = nullptr;
  CUDA(cudaGetSymbolAddress(&again, table));
  REQUIRE(again == address);
  return Pass();
}
