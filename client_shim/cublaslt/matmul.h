#pragma once

#include <cublasLt.h>

#include <optional>

#include "proto/cuda_api/cublaslt_problem.h"

namespace torpor::shim {

// Reads the values of a matmul's descriptors. Returns CUBLAS_STATUS_INVALID_VALUE for invalid or
// inconsistent descriptors, and CUBLAS_STATUS_NOT_SUPPORTED, logged once, for values that cannot be
// sent.
cublasStatus_t ReadProblem(cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
                           cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                           cublasLtMatrixLayout_t d, wire::CublasLtProblem& problem);

// Converts an algorithm to the program's opaque structure and back; nullopt for a structure that no
// heuristic has filled in.
cublasLtMatmulAlgo_t ToOpaque(const wire::CublasLtAlgorithm& algorithm);
std::optional<wire::CublasLtAlgorithm> FromOpaque(const cublasLtMatmulAlgo_t& opaque);

}  // namespace torpor::shim
