#include "emulator/blas/lt/matmul_types.h"

#include <algorithm>

namespace torpor::emulator {
namespace {

// A legal combination of types, for A and B alike and for C and D alike.
struct Combination {
  cudaDataType scale;
  cudaDataType factors;
  cudaDataType result;
};

// "Table of supported types" of cublasLtMatmul, without 8-bit floats.
constexpr Combination kSingle[] = {
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F},  {CUDA_R_32F, CUDA_R_16F, CUDA_R_16F},
    {CUDA_R_32F, CUDA_R_16F, CUDA_R_32F},  {CUDA_R_32F, CUDA_R_16BF, CUDA_R_16BF},
    {CUDA_R_32F, CUDA_R_16BF, CUDA_R_32F}, {CUDA_R_32F, CUDA_R_8I, CUDA_R_32F},
    {CUDA_C_32F, CUDA_C_32F, CUDA_C_32F},
};
constexpr Combination kDouble[] = {{CUDA_R_64F, CUDA_R_64F, CUDA_R_64F},
                                   {CUDA_C_64F, CUDA_C_64F, CUDA_C_64F}};
constexpr Combination kHalf[] = {{CUDA_R_16F, CUDA_R_16F, CUDA_R_16F}};
constexpr Combination kInteger[] = {{CUDA_R_32I, CUDA_R_8I, CUDA_R_32I},
                                    {CUDA_R_32F, CUDA_R_8I, CUDA_R_8I}};

// Whether `combinations` has the types.
template <std::size_t kCount>
bool Contains(const Combination (&combinations)[kCount], const LtTypes& types) {
  return std::any_of(combinations, combinations + kCount, [&](const Combination& known) {
    return known.scale == types.scale && known.factors == types.a && known.result == types.d;
  });
}

}  // namespace

bool LtTypesAgree(const LtTypes& types) {
  if (types.a != types.b || types.c != types.d) return false;
  switch (types.compute) {
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
    case CUBLAS_COMPUTE_32F_FAST_16F:
    case CUBLAS_COMPUTE_32F_FAST_16BF:
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      return Contains(kSingle, types);
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return Contains(kDouble, types);
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return Contains(kHalf, types);
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return Contains(kInteger, types);
    default:
      return false;
  }
}

}  // namespace torpor::emulator
