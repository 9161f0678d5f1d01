#pragma once

#include <cublasLt.h>

#include <optional>

#include "proto/cuda_api/cublaslt_problem.h"

namespace torpor::shim {

// The values of a matmul's descriptors; CUBLAS_STATUS_INVALID_VALUE where one is none or they do
// not go together, CUBLAS_STATUS_NOT_SUPPORTED, said once, where they cannot be sent.
cublasStatus_t ReadProblem(cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
                           cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                           cublasLtMatrixLayout_t d, wire::CublasLtProblem& problem);

// An algorithm as programs hold it, and back; none where the program made it up itself.
cublasLtMatmulAlgo_t ToOpaque(const wire::CublasLtAlgorithm& algorithm);
std::optional<wire::CublasLtAlgorithm> FromOpaque(const cublasLtMatmulAlgo_t& opaque);

}  // namespace torpor::shim
