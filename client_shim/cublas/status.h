#pragma once

#include <cublas_api.h>
#include <cuda_runtime_api.h>

// What libcublas and libcublasLt say alike: statuses, and which version they are.
namespace torpor::shim {

cublasStatus_t CublasStatusOf(cudaError_t error);

// Never null.
const char* NameOfStatus(cublasStatus_t status);
const char* MeaningOfStatus(cublasStatus_t status);

// Of the headers that these libraries implement, whichever cuBLAS the node has.
cublasStatus_t PropertyOfCublas(libraryPropertyType type, int* value);

}  // namespace torpor::shim
