#pragma once

#include <cstddef>
#include <cstdint>

// The work of kernels.cu in C++, as a careful programmer would write it for all cores of a CPU.
namespace torpor::native {

void VectorAdd(const float* a, const float* b, float* c, std::size_t n);
void Axpy(const float* a, const float* b, float* c, std::size_t n);
void Logistic(const float* a, const float* b, float* c, std::size_t n);
float Reduce(const float* in, std::size_t n);

// Square matrices of `n` rows, a multiple of 32.
void Transpose(const float* in, float* out, std::size_t n);
void Stencil(const float* in, float* out, std::size_t n);
void Multiply(const float* a, const float* b, float* c, std::size_t n);

void Gather(const float* in, const std::int32_t* index, float* out, std::size_t n);
void Histogram(const std::uint32_t* in, std::uint32_t* bins, std::size_t n);  // 256 bins
void Collatz(const std::uint32_t* in, std::uint32_t* steps, std::size_t n);

}  // namespace torpor::native
