#include "emulator/blas/element_type.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "emulator/library/half.h"

namespace torpor::emulator {
namespace {

template <typename T>
const T& At(const void* array, std::ptrdiff_t index) {
  return static_cast<const T*>(array)[index];
}
template <typename T>
T& At(void* array, std::ptrdiff_t index) {
  return static_cast<T*>(array)[index];
}

}  // namespace

// 16-bit types go through float, in which they are exact.
std::complex<double> LoadElement(const void* array, std::ptrdiff_t index, cudaDataType type) {
  float wide = 0;
  switch (type) {
    case CUDA_C_64F:
      return At<std::complex<double>>(array, index);
    case CUDA_C_32F:
      return At<std::complex<float>>(array, index);
    case CUDA_R_64F:
      return At<double>(array, index);
    case CUDA_R_32F:
      return At<float>(array, index);
    case CUDA_R_32I:
      return At<std::int32_t>(array, index);
    case CUDA_R_8I:
      return At<std::int8_t>(array, index);
    case CUDA_R_16F:
      HalfToFloat(&At<std::uint16_t>(array, index), &wide, 1);
      return wide;
    case CUDA_R_16BF:
      Bfloat16ToFloat(&At<std::uint16_t>(array, index), &wide, 1);
      return wide;
    default:
      return 0;
  }
}

void StoreElement(void* array, std::ptrdiff_t index, cudaDataType type,
                  std::complex<double> value) {
  const auto narrow = static_cast<float>(value.real());
  switch (type) {
    case CUDA_C_64F:
      At<std::complex<double>>(array, index) = value;
      return;
    case CUDA_C_32F:
      At<std::complex<float>>(array, index) = std::complex<float>(value);
      return;
    case CUDA_R_64F:
      At<double>(array, index) = value.real();
      return;
    case CUDA_R_32F:
      At<float>(array, index) = narrow;
      return;
    case CUDA_R_32I:
      // Sums beyond 32 bits wrap, as the GPU's do.
      At<std::int32_t>(array, index) =
          static_cast<std::int32_t>(static_cast<std::int64_t>(std::nearbyint(value.real())));
      return;
    case CUDA_R_8I:
      At<std::int8_t>(array, index) =
          static_cast<std::int8_t>(std::clamp(std::nearbyint(value.real()), -128.0, 127.0));
      return;
    case CUDA_R_16F:
      FloatToHalf(&narrow, &At<std::uint16_t>(array, index), 1);
      return;
    case CUDA_R_16BF:
      FloatToBfloat16(&narrow, &At<std::uint16_t>(array, index), 1);
      return;
    default:
      return;
  }
}

}  // namespace torpor::emulator
