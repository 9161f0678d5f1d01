// The smallest whole program: upload, launch, download. Built with cudaLaunchKernel too.
#include <vector>

#include "tests/e2e/programs/check.h"

__global__ void Add(const float* a, const float* b, float* c, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) c[i] = a[i] + b[i];
}

#ifdef LAUNCH_BY_POINTER
constexpr bool kByPointer = true;
#else
constexpr bool kByPointer = false;
#endif

static void Launch(const float* a, const float* b, float* c, int count) {
  const int blocks = (count + 255) / 256;
  void* arguments[] = {&a, &b, &c, &count};
  if (kByPointer) {
    CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(Add), blocks, 256, arguments, 0, nullptr));
  } else {
    Add<<<blocks, 256>>>(a, b, c, count);
  }
}

int main() {
  constexpr int kCount = 50'001;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  std::vector<float> a(kCount);
  std::vector<float> b(kCount);
  std::vector<float> c(kCount);
  for (int i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 2.5F * static_cast<float>(i % 97);
  }
  float* device_a = nullptr;
  float* device_b = nullptr;
  float* device_c = nullptr;
  CUDA(cudaMalloc(&device_a, kBytes));
  CUDA(cudaMalloc(&device_b, kBytes));
  CUDA(cudaMalloc(&device_c, kBytes));
  CUDA(cudaMemcpy(device_a, a.data(), kBytes, cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(device_b, b.data(), kBytes, cudaMemcpyHostToDevice));
  Launch(device_a, device_b, device_c, kCount);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(c.data(), device_c, kBytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) REQUIRE(c[i] == a[i] + b[i]);
  CUDA(cudaFree(device_a));
  CUDA(cudaFree(device_b));
  CUDA(cudaFree(device_c));
  return Pass();
}
