// What the translation units of separate_units.cu share: device code of one unit uses the functions
// and variables of another (nvcc -rdc=true).
#pragma once

#include <cuda_runtime.h>

// separate_units_state.cu
struct Total {
  long long sum;
  int calls;
};
extern __device__ Total total;
extern __device__ float results[32];
extern __constant__ float weights[4];
extern __device__ int* const total_calls;  // points to total.calls

__device__ void Record(long long value);
__device__ int Fibonacci(int n);
__device__ int ReverseInBlock(int value);
void LaunchStateKernel(int* out);

// separate_units_shapes.cu
struct Shape {
  __device__ virtual ~Shape() {}
  __device__ virtual float Area() const = 0;
};
__device__ Shape* MakeShape(int kind, float size);

using Scale = float (*)(float);
extern __device__ Scale scales[2];
void LaunchShapesKernel(int* out);

// Every unit has this template's kernel.
template <typename T>
__global__ void Fill(T* out, T value) {
  out[threadIdx.x] = value;
}
template <typename T>
void LaunchFill(T* out, T value) {
  Fill<<<1, 32>>>(out, value);
}
