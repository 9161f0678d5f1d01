#include "client_shim/cublaslt/matmul.h"

#include <cstring>

#include "client_shim/core/client_core.h"

namespace torpor::shim {

static_assert(sizeof(wire::CublasLtAlgorithm) <= sizeof(cublasLtMatmulAlgo_t));

cublasStatus_t ReadProblem(cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
                           cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                           cublasLtMatrixLayout_t d, wire::CublasLtProblem& problem) {
  const auto* const operation = LtValueOf<LtMatmulDescriptor>(matmul);
  if (!operation) return CUBLAS_STATUS_INVALID_VALUE;
  problem.matmul = *operation;
  bool strided = true;
  const auto read = [&](cublasLtMatrixLayout_t layout, LtMatrixLayout& into) {
    const auto* const value = LtValueOf<LtMatrixLayout>(layout);
    if (!value) return false;
    strided = strided && value->batch_mode == CUBLASLT_BATCH_MODE_STRIDED &&
              value->plane_offset == 0 && value->order <= CUBLASLT_ORDER_ROW;
    into = *value;
    return true;
  };
  if (!read(a, problem.a) || !read(b, problem.b) || !read(c, problem.c) || !read(d, problem.d))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!strided || !LtIsRemotable(*operation) ||
      operation->pointer_mode > CUBLASLT_POINTER_MODE_DEVICE) {
    torpor_client_core()->WarnOnce(
        "cublasLtMatmul",
        "cublasLtMatmul: tiled orders, batches by arrays of addresses, vectors of alphas and block"
        " scales are not supported by Torpor (docs/shim.md)");
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  return wire::LtProblemIsValid(problem) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasLtMatmulAlgo_t ToOpaque(const wire::CublasLtAlgorithm& algorithm) {
  cublasLtMatmulAlgo_t opaque{};
  std::memcpy(&opaque, &algorithm, sizeof algorithm);
  return opaque;
}

std::optional<wire::CublasLtAlgorithm> FromOpaque(const cublasLtMatmulAlgo_t& opaque) {
  wire::CublasLtAlgorithm algorithm;
  std::memcpy(static_cast<void*>(&algorithm), &opaque, sizeof algorithm);
  if (algorithm.preference.kind != LtMatmulPreference::kKind || algorithm.requested == 0 ||
      algorithm.requested > wire::kMaxLtAlgorithms || algorithm.place >= algorithm.requested) {
    return std::nullopt;
  }
  return algorithm;
}

}  // namespace torpor::shim
