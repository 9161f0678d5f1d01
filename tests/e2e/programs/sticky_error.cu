// A kernel that touches memory that is not there: the error comes with the next synchronising
// call, stays, and the program ends in its own way.
#include "tests/e2e/programs/check.h"

__global__ void Write(int* pointer) { *pointer = 1; }

int main() {
  int* device = nullptr;
  CUDA(cudaMalloc(&device, sizeof(int)));
  Write<<<1, 1>>>(device);
  CUDA(cudaDeviceSynchronize());
  Write<<<1, 1>>>(reinterpret_cast<int*>(0x1234'5678'9000ULL));
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  int value = 0;
  EXPECT_CUDA(cudaMemcpy(&value, device, sizeof(int), cudaMemcpyDeviceToHost),
              cudaErrorIllegalAddress);
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_CUDA(cudaGetLastError(), cudaErrorIllegalAddress);
  return Pass();
}
