#pragma once

#include <cublas_api.h>
#include <cuda_runtime_api.h>

#include "client_shim/c_entry.h"

// What libcublas and libcublasLt say alike: statuses, and which version they are.
namespace torpor::shim {

cublasStatus_t CublasStatusOf(cudaError_t error);

// Never null.
const char* NameOfStatus(cublasStatus_t status);
const char* MeaningOfStatus(cublasStatus_t status);

// Of the headers that these libraries implement, whichever cuBLAS the node has.
cublasStatus_t PropertyOfCublas(libraryPropertyType type, int* value);

// What `body` returns, or that there was too little memory.
template <typename Body>
cublasStatus_t Guarded(Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
  return WithoutExceptions<CUBLAS_STATUS_ALLOC_FAILED>(body, entry);
}

}  // namespace torpor::shim
