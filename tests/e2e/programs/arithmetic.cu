// Divergent loops, recursion by calls, local arrays, double precision, integers of every width
// and special functions, each against the host.
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/e2e/programs/check.h"

constexpr int kCount = 4096;

__host__ __device__ int CollatzSteps(unsigned value) {
  int steps = 0;
  while (value != 1) {
    value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    if (++steps > 300) break;
  }
  return steps;
}

__global__ void Collatz(int* steps) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  steps[i] = CollatzSteps(i + 1);
}

__host__ __device__ std::uint64_t Mixed(std::uint32_t x) {
  const std::int64_t product = static_cast<std::int64_t>(static_cast<std::int32_t>(x)) * -12345;
  const std::uint64_t quotient = (static_cast<std::uint64_t>(x) << 20) / (x % 1000 + 3);
  const auto narrow = static_cast<std::int8_t>(x * 37U);
  const auto word = static_cast<std::uint16_t>(x * 40'503U);
  return static_cast<std::uint64_t>(product) ^ quotient ^
         (static_cast<std::uint64_t>(narrow) << 13) ^ (word >> 3) ^ ((x << 5) | (x >> 27));
}

__global__ void Integers(std::uint64_t* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = Mixed(i * 2'654'435'761U);
}

__noinline__ __device__ double Polynomial(const double* coefficients, int degree, double x) {
  double value = 0;
  for (int i = degree; i >= 0; --i) value = fma(value, x, coefficients[i]);
  return value;
}

// A local array that is indexed by data, and a call that is not inlined.
__global__ void Doubles(double* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  double coefficients[8];
  for (unsigned k = 0; k < 8; ++k) coefficients[(k + i) % 8] = 1.0 / (k + 1);
  out[i] = Polynomial(coefficients, 7, 0.001 * i - 2) + sqrt(static_cast<double>(i));
}

__global__ void Specials(float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float x = 0.01F * static_cast<float>(i) + 0.1F;
  switch (i % 6) {
    case 0:
      out[i] = sinf(x);
      break;
    case 1:
      out[i] = expf(-x);
      break;
    case 2:
      out[i] = logf(x);
      break;
    case 3:
      out[i] = rsqrtf(x);
      break;
    case 4:
      out[i] = tanhf(x - 5);
      break;
    default:
      out[i] = powf(x, 1.5F);
  }
}

static double SpecialOnHost(int i) {
  const double x = static_cast<double>(0.01F * static_cast<float>(i) + 0.1F);
  switch (i % 6) {
    case 0:
      return std::sin(x);
    case 1:
      return std::exp(-x);
    case 2:
      return std::log(x);
    case 3:
      return 1 / std::sqrt(x);
    case 4:
      return std::tanh(x - 5);
    default:
      return std::pow(x, 1.5);
  }
}

template <typename T>
std::vector<T> RunKernel(void (*kernel)(T*)) {
  T* device = nullptr;
  std::vector<T> out(kCount);
  CUDA(cudaMalloc(&device, kCount * sizeof(T)));
  kernel<<<kCount / 128, 128>>>(device);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(out.data(), device, kCount * sizeof(T), cudaMemcpyDeviceToHost));
  CUDA(cudaFree(device));
  return out;
}

int main() {
  const auto steps = RunKernel(Collatz);
  const auto integers = RunKernel(Integers);
  const auto doubles = RunKernel(Doubles);
  const auto specials = RunKernel(Specials);
  for (int i = 0; i < kCount; ++i) {
    REQUIRE(steps[i] == CollatzSteps(static_cast<unsigned>(i) + 1));
    REQUIRE(integers[i] == Mixed(static_cast<unsigned>(i) * 2'654'435'761U));
    double value = 0;
    const double x = 0.001 * i - 2;
    for (int k = 7; k >= 0; --k) value = std::fma(value, x, 1.0 / ((k - i % 8 + 8) % 8 + 1));
    value += std::sqrt(static_cast<double>(i));
    REQUIRE(std::abs(doubles[i] - value) <= 1e-9 * (1 + std::abs(value)));
    const double special = SpecialOnHost(i);
    REQUIRE(std::abs(static_cast<double>(specials[i]) - special) <= 2e-5 * (1 + std::abs(special)));
  }
  return Pass();
}
