#pragma once

#include <cublasLt.h>

#include "nvidia/cublaslt/descriptors.h"

namespace torpor::emulator {

// The types of a product: of the matrices, of the computation, and of alpha and beta.
struct LtTypes {
  cublasComputeType_t compute;
  cudaDataType scale;
  cudaDataType a;
  cudaDataType b;
  cudaDataType c;
  cudaDataType d;
};

// Whether cuBLASLt documents the combination and the emulator supports it.
bool LtTypesAgree(const LtTypes& types);

}  // namespace torpor::emulator
