#pragma once

#include <cublas_v2.h>

#include <complex>
#include <cstddef>

namespace torpor::emulator {

// Bytes of an element, or 0 for a type that the emulator does not compute with.
constexpr std::size_t ElementBytes(cudaDataType type) {
  switch (type) {
    case CUDA_C_64F:
      return 16;
    case CUDA_R_64F:
    case CUDA_C_32F:
      return 8;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_8I:
      return 1;
    default:
      return 0;
  }
}

// Read and write element `index` of an array. Stores round to nearest even; 8-bit integers
// saturate.
std::complex<double> LoadElement(const void* array, std::ptrdiff_t index, cudaDataType type);
void StoreElement(void* array, std::ptrdiff_t index, cudaDataType type, std::complex<double> value);

// The cudaDataType of the C++ type T.
template <typename T>
inline constexpr cudaDataType kDataTypeOf = CUDA_R_32F;
template <>
inline constexpr cudaDataType kDataTypeOf<double> = CUDA_R_64F;
template <>
inline constexpr cudaDataType kDataTypeOf<std::complex<float>> = CUDA_C_32F;
template <>
inline constexpr cudaDataType kDataTypeOf<std::complex<double>> = CUDA_C_64F;
template <>
inline constexpr cudaDataType kDataTypeOf<__half> = CUDA_R_16F;

}  // namespace torpor::emulator
