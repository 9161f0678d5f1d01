#include "tests/e2e/programs/separate_units.h"

__device__ Total total = {1000, 0};
__device__ float results[32];
__constant__ float weights[4] = {0.5f, 1.5f, 2.5f, 3.5f};
__device__ int* const total_calls = &total.calls;

// Other units have a variable and a kernel of these names, too.
static __device__ int own = 3;
static __global__ void Own(int* out) { out[threadIdx.x] = own * static_cast<int>(threadIdx.x); }

__device__ void Record(long long value) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&total.sum),
            static_cast<unsigned long long>(value));
  atomicAdd(&total.calls, 1);
}

__device__ int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }

__device__ int ReverseInBlock(int value) {
  __shared__ int fixed[64];
  extern __shared__ int dynamic[];
  fixed[threadIdx.x] = value;
  __syncthreads();
  dynamic[threadIdx.x] = fixed[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  return dynamic[threadIdx.x];
}

void LaunchStateKernel(int* out) {
  Own<<<1, 32>>>(out);
  LaunchFill(out + 32, 7);
}
