#pragma once

#include <cublasLt.h>

#include "nvidia/cublaslt/descriptors.h"

namespace torpor::emulator {

// The types of a product: of its matrices, of what it is computed in, of alpha and beta.
struct LtTypes {
  cublasComputeType_t compute;
  cudaDataType scale;
  cudaDataType a;
  cudaDataType b;
  cudaDataType c;
  cudaDataType d;
};

// Whether cuBLASLt documents this combination, and the emulator has it.
bool LtTypesAgree(const LtTypes& types);

}  // namespace torpor::emulator
