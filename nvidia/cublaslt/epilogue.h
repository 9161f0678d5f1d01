#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "nvidia/cublaslt/descriptors.h"

// The epilogue of a matmul: operations on the result, and the memory that they use.
namespace torpor {

// Bits that make up the numbers of epilogues.
enum LtEpiloguePart : std::uint32_t {
  kLtRelu = 2,
  kLtBias = 4,
  kLtReluGradient = 8,
  kLtBiasGradient = 16,
  kLtGelu = 32,
  kLtGeluGradient = 64,
  kLtAuxiliary = 128,
  kLtBiasGradientA = 256,
  kLtBiasGradientB = 512,
};

// Whether the number is an epilogue that this project supports.
constexpr bool LtEpilogueIsKnown(std::uint32_t epilogue) {
  switch (epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_AUX:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DRELU:
    case CUBLASLT_EPILOGUE_DRELU_BGRAD:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
    case CUBLASLT_EPILOGUE_DGELU:
    case CUBLASLT_EPILOGUE_DGELU_BGRAD:
    case CUBLASLT_EPILOGUE_BGRADA:
    case CUBLASLT_EPILOGUE_BGRADB:
      return true;
    default:
      return false;
  }
}

// Whether the epilogue has any of `parts`, LtEpiloguePart bits.
constexpr bool LtHas(const LtMatmulDescriptor& matmul, std::uint32_t parts) {
  return (matmul.epilogue & parts) != 0;
}
// Whether the epilogue reads or writes the bias vector.
constexpr bool LtHasBias(const LtMatmulDescriptor& matmul) {
  return LtHas(matmul, kLtBias | kLtBiasGradient | kLtBiasGradientA | kLtBiasGradientB);
}
constexpr bool LtBiasIsWritten(const LtMatmulDescriptor& matmul) {
  return LtHas(matmul, kLtBiasGradient | kLtBiasGradientA | kLtBiasGradientB);
}
// Whether the auxiliary matrix holds one bit per element instead of numbers.
constexpr bool LtAuxIsMask(const LtMatmulDescriptor& matmul) {
  return LtHas(matmul, kLtRelu | kLtReluGradient);
}
constexpr bool LtAuxIsWritten(const LtMatmulDescriptor& matmul) {
  return LtHas(matmul, kLtRelu | kLtGelu);
}

}  // namespace torpor
