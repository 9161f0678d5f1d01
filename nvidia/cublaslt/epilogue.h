#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "nvidia/cublaslt/descriptors.h"

// What the epilogue of a matmul does to its result, and which memory it takes part in.
namespace torpor {

// The parts of which the numbers of epilogues are put together.
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

constexpr bool LtHas(const LtMatmulDescriptor& matmul, std::uint32_t parts) {
  return (matmul.epilogue & parts) != 0;
}
constexpr bool LtHasBias(const LtMatmulDescriptor& matmul) {
  return LtHas(matmul, kLtBias | kLtBiasGradient | kLtBiasGradientA | kLtBiasGradientB);
}
constexpr bool LtBiasIsWritten(const LtMatmulDescriptor& matmul) {
  return LtHas(matmul, kLtBiasGradient | kLtBiasGradientA | kLtBiasGradientB);
}
// The auxiliary matrix holds a bit an element, else numbers.
constexpr bool LtAuxIsMask(const LtMatmulDescriptor& matmul) {
  return LtHas(matmul, kLtRelu | kLtReluGradient);
}
constexpr bool LtAuxIsWritten(const LtMatmulDescriptor& matmul) {
  return LtHas(matmul, kLtRelu | kLtGelu);
}

}  // namespace torpor
