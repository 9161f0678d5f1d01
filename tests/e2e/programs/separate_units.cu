// Relocatable device code: functions, variables, virtual functions and function pointers across
// translation units, and names that are each unit's own.
#include "tests/e2e/programs/check.h"
#include "tests/e2e/programs/separate_units.h"

__global__ void Accumulate() {
  Record(threadIdx.x);
  results[threadIdx.x] = weights[threadIdx.x % 4];
}

__global__ void CountCalls(int* out) { *out = *total_calls; }

__global__ void Reverse(int* out) {
  extern __shared__ int dynamic[];
  out[threadIdx.x] = ReverseInBlock(static_cast<int>(threadIdx.x)) + Fibonacci(10);
  out[threadIdx.x] += 100 * dynamic[0];
}

__global__ void Areas(float* out) {
  Shape* shape = MakeShape(threadIdx.x % 2, static_cast<float>(threadIdx.x));
  out[threadIdx.x] = shape->Area();
  delete shape;
}

__global__ void Scaled(float* out) {
  out[threadIdx.x] = scales[threadIdx.x / 16](static_cast<float>(threadIdx.x));
}

void CheckVariables(int* device) {
  Accumulate<<<1, 32>>>();
  CountCalls<<<1, 1>>>(device);
  int calls = 0;
  CUDA(cudaMemcpy(&calls, device, sizeof(calls), cudaMemcpyDeviceToHost));
  REQUIRE(calls == 32);
  Total after{};
  CUDA(cudaMemcpyFromSymbol(&after, total, sizeof(after)));
  REQUIRE(after.sum == 1000 + 31 * 32 / 2 && after.calls == 32);
  float host[32];
  CUDA(cudaMemcpyFromSymbol(host, results, sizeof(host)));
  for (int i = 0; i < 32; ++i) REQUIRE(host[i] == 0.5f + static_cast<float>(i % 4));
  const float changed = 8;
  CUDA(cudaMemcpyToSymbol(weights, &changed, sizeof(changed), 3 * sizeof(float)));
}

void CheckFunctions(int* device) {
  Reverse<<<1, 64, 64 * sizeof(int)>>>(device);
  int host[64];
  CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) REQUIRE(host[i] == 63 - i + 55 + 100 * 63);
}

void CheckPointers(float* device) {
  float host[32];
  Areas<<<1, 32>>>(device);
  CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; ++i) REQUIRE(host[i] == static_cast<float>((i % 2 == 0 ? 1 : 3) * i * i));
  Scaled<<<1, 32>>>(device);
  CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; ++i) REQUIRE(host[i] == static_cast<float>((i < 16 ? 2 : 8) * i));
}

void CheckOwnNames(int* device) {
  int host[64];
  LaunchStateKernel(device);
  CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; ++i) REQUIRE(host[i] == 3 * i && host[32 + i] == 7);
  LaunchShapesKernel(device);
  CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; ++i) REQUIRE(host[i] == 5 + i && host[32 + i] == 9);
}

int main() {
  int* device = nullptr;
  CUDA(cudaMalloc(&device, 64 * sizeof(int)));
  CheckVariables(device);
  CheckFunctions(device);
  CheckPointers(reinterpret_cast<float*>(device));
  CheckOwnNames(device);
  return Pass();
}
