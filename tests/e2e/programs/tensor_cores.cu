// Products of matrices on tensor cores: CUDA's wmma, and mma.sync behind ldmatrix and cp.async, as
// libraries write it.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include <cmath>
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kM = 64;
constexpr int kN = 64;
constexpr int kK = 128;

// A warp a tile of 16 x 16; b is column by column.
__global__ void Wmma(const half* a, const half* b, float* c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.0F);
  const int row = static_cast<int>(blockIdx.y) * 16;
  const int column = static_cast<int>(blockIdx.x) * 16;
  for (int k = 0; k < kK; k += 16) {
    wmma::load_matrix_sync(left, a + row * kK + k, kK);
    wmma::load_matrix_sync(right, b + column * kK + k, kK);
    wmma::mma_sync(sum, left, right, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2;
  wmma::store_matrix_sync(c + row * kN + column, sum, kN, wmma::mem_row_major);
}

__device__ unsigned SharedAddress(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// A warp a tile of 16 x 8, through two stages of shared memory.
__global__ void Mma(const half* a, const half* b, float* c) {
  constexpr int kStage = 16;
  __shared__ alignas(16) half left[2][16][kStage];
  __shared__ alignas(16) half right[2][8][kStage];
  const unsigned lane = threadIdx.x;
  const int row = static_cast<int>(blockIdx.y) * 16;
  const int column = static_cast<int>(blockIdx.x) * 8;
  const auto fetch = [&](int stage, int k) {
    __pipeline_memcpy_async(&left[stage][lane / 2][lane % 2 * 8],
                            a + (row + lane / 2) * kK + k + lane % 2 * 8, 16);
    if (lane < 16) {
      __pipeline_memcpy_async(&right[stage][lane / 2][lane % 2 * 8],
                              b + (column + lane / 2) * kK + k + lane % 2 * 8, 16);
    }
    __pipeline_commit();
  };
  float sum[4] = {};
  fetch(0, 0);
  for (int k = 0; k < kK; k += kStage) {
    const int stage = k / kStage % 2;
    if (k + kStage < kK) fetch(1 - stage, k + kStage);
    __pipeline_wait_prior(k + kStage < kK ? 1 : 0);
    __syncwarp();
    unsigned x[4];
    unsigned y[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(SharedAddress(&left[stage][lane % 16][lane / 16 * 8])));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(y[0]), "=r"(y[1])
                 : "r"(SharedAddress(&right[stage][lane % 8][lane / 8 % 2 * 8])));
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    __syncwarp();
  }
  for (int i = 0; i < 4; ++i) {
    const unsigned at_row = row + lane / 4 + (i >= 2 ? 8 : 0);
    c[at_row * kN + column + lane % 4 * 2 + i % 2] = sum[i];
  }
}

int main() {
  std::vector<half> a(kM * kK);
  std::vector<half> b(kN * kK);
  for (int i = 0; i < kM * kK; ++i) a[i] = __float2half(static_cast<float>(i * 7 % 13 - 6) / 8);
  for (int i = 0; i < kN * kK; ++i) b[i] = __float2half(static_cast<float>(i * 5 % 11 - 5) / 4);
  half* device_a = nullptr;
  half* device_b = nullptr;
  float* device_c = nullptr;
  CUDA(cudaMalloc(&device_a, a.size() * sizeof(half)));
  CUDA(cudaMalloc(&device_b, b.size() * sizeof(half)));
  CUDA(cudaMalloc(&device_c, 2 * kM * kN * sizeof(float)));
  CUDA(cudaMemcpy(device_a, a.data(), a.size() * sizeof(half), cudaMemcpyHostToDevice));
  CUDA(cudaMemcpy(device_b, b.data(), b.size() * sizeof(half), cudaMemcpyHostToDevice));
  Wmma<<<dim3(kN / 16, kM / 16), 32>>>(device_a, device_b, device_c);
  Mma<<<dim3(kN / 8, kM / 16), 32>>>(device_a, device_b, device_c + kM * kN);
  CUDA(cudaGetLastError());
  std::vector<float> c(2 * kM * kN);
  CUDA(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      // Eighths times quarters: every sum is exact.
      float expected = 0;
      for (int k = 0; k < kK; ++k) {
        expected += __half2float(a[row * kK + k]) * __half2float(b[column * kK + k]);
      }
      REQUIRE(c[row * kN + column] == 2 * expected);
      REQUIRE(c[kM * kN + row * kN + column] == expected);
    }
  }
  return Pass();
}
