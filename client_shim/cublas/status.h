#pragma once

#include <cublas_api.h>
#include <cuda_runtime_api.h>

#include "client_shim/c_entry.h"

// Statuses and versions, which libcublas and libcublasLt have in common.
namespace torpor::shim {

// The status for an error of the transport.
cublasStatus_t CublasStatusOf(cudaError_t error);

// The status's name and its meaning in words; never null.
const char* NameOfStatus(cublasStatus_t status);
const char* MeaningOfStatus(cublasStatus_t status);

// The version of the headers that these libraries implement, not the version of the node's cuBLAS.
cublasStatus_t PropertyOfCublas(libraryPropertyType type, int* value);

// Returns body()'s result, or CUBLAS_STATUS_ALLOC_FAILED if memory ran out.
template <typename Body>
cublasStatus_t Guarded(Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
  return WithoutExceptions<CUBLAS_STATUS_ALLOC_FAILED>(body, entry);
}

}  // namespace torpor::shim
