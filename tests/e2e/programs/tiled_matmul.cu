// Shared memory and barriers: a tiled matrix product against the host's.
#include <cmath>
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kTile = 16;

// c[m][n] = a[m][k] * b[k][n]; sizes need not be multiples of the tile.
__global__ void Multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const int x = static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(threadIdx.y);
  const int row = static_cast<int>(blockIdx.y) * kTile + y;
  const int column = static_cast<int>(blockIdx.x) * kTile + x;
  float sum = 0;
  for (int start = 0; start < k; start += kTile) {
    tile_a[y][x] = row < m && start + x < k ? a[row * k + start + x] : 0.0F;
    tile_b[y][x] = column < n && start + y < k ? b[(start + y) * n + column] : 0.0F;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[y][i] * tile_b[i][x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

int main() {
  constexpr int kM = 75;
  constexpr int kN = 131;
  constexpr int kK = 90;
  std::vector<float> a(kM * kK);
  std::vector<float> b(kK * kN);
  std::vector<float> c(kM * kN);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = std::cos(static_cast<float>(i));
  float* device_a = nullptr;
  float* device_b = nullptr;
  float* device_c = nullptr;
  CUDA(cudaMalloc(&device_a, a.size() * sizeof(float)));
  CUDA(cudaMalloc(&device_b, b.size() * sizeof(float)));
  CUDA(cudaMalloc(&device_c, c.size() * sizeof(float)));
  CUDA(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  const dim3 grid((kN + kTile - 1) / kTile, (kM + kTile - 1) / kTile);
  Multiply<<<grid, dim3(kTile, kTile)>>>(device_a, device_b, device_c, kM, kN, kK);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      double sum = 0;
      for (int i = 0; i < kK; ++i) {
        sum += static_cast<double>(a[row * kK + i]) * static_cast<double>(b[i * kN + column]);
      }
      REQUIRE(std::abs(static_cast<double>(c[row * kN + column]) - sum) < 1e-4);
    }
  }
  return Pass();
}
