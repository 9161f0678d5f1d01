#include "bench/emulator/native_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace torpor::native {

void VectorAdd(const float* a, const float* b, float* c, std::size_t n) {
#pragma omp parallel for simd schedule(static)
  for (std::size_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}

void Axpy(const float* a, const float* b, float* c, std::size_t n) {
#pragma omp parallel for simd schedule(static)
  for (std::size_t i = 0; i < n; ++i) c[i] = 2.5F * a[i] + b[i];
}

void Logistic(const float* a, const float* b, float* c, std::size_t n) {
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n; ++i) {
    c[i] = std::log(1 + std::exp(-a[i])) * std::sqrt(b[i]);
  }
}

float Reduce(const float* in, std::size_t n) {
  float sum = 0;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) sum += in[i];
  return sum;
}

void Transpose(const float* in, float* out, std::size_t n) {
  constexpr std::size_t kTile = 32;
#pragma omp parallel for schedule(static)
  for (std::size_t row = 0; row < n; row += kTile) {
    for (std::size_t column = 0; column < n; column += kTile) {
      for (std::size_t x = column; x < column + kTile; ++x) {
        for (std::size_t y = row; y < row + kTile; ++y) out[x * n + y] = in[y * n + x];
      }
    }
  }
}

void Stencil(const float* in, float* out, std::size_t n) {
#pragma omp parallel for schedule(static)
  for (std::size_t y = 1; y < n - 1; ++y) {
    const float* const row = in + y * n;
#pragma omp simd
    for (std::size_t x = 1; x < n - 1; ++x) {
      out[y * n + x] = 0.2F * (row[x] + row[x - 1] + row[x + 1] + (row - n)[x] + row[x + n]);
    }
  }
}

void Multiply(const float* a, const float* b, float* c, std::size_t n) {
  constexpr std::size_t kTile = 32;
#pragma omp parallel for schedule(static)
  for (std::size_t row = 0; row < n; ++row) {
    std::fill_n(c + row * n, n, 0.0F);
    for (std::size_t k = 0; k < n; k += kTile) {
      for (std::size_t i = k; i < k + kTile; ++i) {
        const float x = a[row * n + i];
        for (std::size_t j = 0; j < n; ++j) c[row * n + j] += x * b[i * n + j];
      }
    }
  }
}

void Gather(const float* in, const std::int32_t* index, float* out, std::size_t n) {
#pragma omp parallel for simd schedule(static)
  for (std::size_t i = 0; i < n; ++i) out[i] = in[index[i]];
}

void Histogram(const std::uint32_t* in, std::uint32_t* bins, std::size_t n) {
  std::fill_n(bins, 256, 0U);
#pragma omp parallel
  {
    std::array<std::uint32_t, 256> mine{};
#pragma omp for schedule(static)
    for (std::size_t i = 0; i < n; ++i) ++mine[in[i] & 255];
#pragma omp critical
    for (std::size_t bin = 0; bin < mine.size(); ++bin) bins[bin] += mine[bin];
  }
}

void Collatz(const std::uint32_t* in, std::uint32_t* steps, std::size_t n) {
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t count = 0;
    for (std::uint32_t x = in[i]; x > 1; ++count) x = x % 2 != 0 ? 3 * x + 1 : x / 2;
    steps[i] = count;
  }
}

}  // namespace torpor::native
