// Copies of every direction from pageable and pinned memory, pitched copies, and fills.
#include <cstring>
#include <numeric>
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kCount = 100'000;
constexpr std::size_t kBytes = kCount * sizeof(int);

__global__ void Increment(int* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) ++values[i];
}

// The source of an asynchronous copy from pageable memory may be reused at once.
static void Pageable(int* device, cudaStream_t stream) {
  std::vector<int> source(kCount);
  std::iota(source.begin(), source.end(), 0);
  CUDA(cudaMemcpyAsync(device, source.data(), kBytes, cudaMemcpyHostToDevice, stream));
  std::memset(source.data(), 0xee, kBytes);
  Increment<<<(kCount + 255) / 256, 256, 0, stream>>>(device, kCount);
  std::vector<int> result(kCount);
  CUDA(cudaMemcpyAsync(result.data(), device, kBytes, cudaMemcpyDeviceToHost, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) REQUIRE(result[i] == i + 1);
}

// Pinned memory is read and written in the stream's order.
static void Pinned(int* device, cudaStream_t stream) {
  int* host = nullptr;
  int* result = nullptr;
  CUDA(cudaMallocHost(&host, kBytes));
  CUDA(cudaHostAlloc(&result, kBytes, cudaHostAllocDefault));
  std::iota(host, host + kCount, 5);
  CUDA(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, stream));
  for (int i = 0; i < 3; ++i) {
    Increment<<<(kCount + 255) / 256, 256, 0, stream>>>(device, kCount);
    // Down into the buffer and up from it again: the second copy must see the first.
    CUDA(cudaMemcpyAsync(host, device, kBytes, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaMemcpyAsync(device, host, kBytes, cudaMemcpyHostToDevice, stream));
  }
  CUDA(cudaMemcpyAsync(result, device, kBytes, cudaMemcpyDefault, stream));
  CUDA(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) REQUIRE(result[i] == i + 8);
  CUDA(cudaFreeHost(host));
  CUDA(cudaFreeHost(result));
}

static void OnTheDevice(int* device) {
  int* other = nullptr;
  CUDA(cudaMalloc(&other, kBytes));
  CUDA(cudaMemset(device, 0x11, kBytes));
  CUDA(cudaMemsetAsync(device + 10, 0, 40));
  CUDA(cudaMemcpy(other, device, kBytes, cudaMemcpyDeviceToDevice));
  std::vector<int> result(kCount);
  CUDA(cudaMemcpy(result.data(), other, kBytes, cudaMemcpyDefault));
  for (int i = 0; i < kCount; ++i) {
    REQUIRE(result[i] == (i >= 10 && i < 20 ? 0 : 0x11111111));
  }
  // Into the middle, by pointer arithmetic.
  const int marker[3] = {1, 2, 3};
  CUDA(cudaMemcpy(other + 500, marker, sizeof(marker), cudaMemcpyHostToDevice));
  int back[5] = {};
  CUDA(cudaMemcpy(back, other + 499, sizeof(back), cudaMemcpyDeviceToHost));
  REQUIRE(back[0] == 0x11111111 && back[1] == 1 && back[3] == 3 && back[4] == 0x11111111);
  CUDA(cudaFree(other));
}

static void Pitched() {
  constexpr std::size_t kWidth = 300;
  constexpr std::size_t kHeight = 40;
  char* device = nullptr;
  std::size_t pitch = 0;
  CUDA(cudaMallocPitch(&device, &pitch, kWidth, kHeight));
  REQUIRE(pitch >= kWidth);
  CUDA(cudaMemset2D(device, pitch, 7, kWidth, kHeight));
  std::vector<char> source(kWidth * kHeight);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 31 % 127);
  // All but the first row and the first ten columns.
  CUDA(cudaMemcpy2D(device + pitch + 10, pitch, source.data() + kWidth + 10, kWidth, kWidth - 10,
                    kHeight - 1, cudaMemcpyHostToDevice));
  std::vector<char> result(kWidth * kHeight);
  CUDA(cudaMemcpy2D(result.data(), kWidth, device, pitch, kWidth, kHeight, cudaMemcpyDeviceToHost));
  for (std::size_t y = 0; y < kHeight; ++y) {
    for (std::size_t x = 0; x < kWidth; ++x) {
      const std::size_t at = y * kWidth + x;
      REQUIRE(result[at] == (y == 0 || x < 10 ? 7 : source[at]));
    }
  }
  CUDA(cudaFree(device));
}

int main() {
  int* device = nullptr;
  CUDA(cudaMalloc(&device, kBytes));
  cudaStream_t stream = nullptr;
  CUDA(cudaStreamCreate(&stream));
  Pageable(device, nullptr);
  Pageable(device, stream);
  Pinned(device, nullptr);
  Pinned(device, stream);
  OnTheDevice(device);
  Pitched();
  return Pass();
}
