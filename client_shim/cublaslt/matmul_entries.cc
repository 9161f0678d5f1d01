#include <algorithm>
#include <cstring>
#include <vector>

#include "client_shim/cublas/status.h"
#include "client_shim/cublasLt/overrides.h"
#include "client_shim/cublaslt/handle_set.h"
#include "client_shim/cublaslt/heuristics.h"
#include "client_shim/cublaslt/matmul.h"
#include "client_shim/stream_work.h"
#include "proto/cuda_api/cublaslt_commands.h"

// Handles, products, and the algorithms for a product.
namespace torpor::shim {
namespace {

template <typename Body>
cublasStatus_t WithHandle(cublasLtHandle_t handle, Body body,
                          const char* entry = __builtin_FUNCTION()) {
  return Guarded(
      [&] {
        ClientCore* const core = CublasLtHandles::Get().FindCore(handle);
        return core ? body(*core) : CUBLAS_STATUS_NOT_INITIALIZED;
      },
      entry);
}

// Reads a scalar of the descriptor's type; false if `scalar` is null.
bool ReadScalar(const LtMatmulDescriptor& matmul, const void* scalar, wire::CublasScalar& value) {
  if (!scalar) return false;
  if (matmul.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE)
    value.address = reinterpret_cast<std::uint64_t>(scalar);
  else
    std::memcpy(value.value.data(), scalar, wire::LtScalarBytes(matmul.scale_type));
  return true;
}

std::uint64_t AddressOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

cublasLtMatmulHeuristicResult_t ResultOf(const wire::CublasLtAnswer& answer,
                                         const wire::CublasLtAlgorithm& algorithm) {
  cublasLtMatmulHeuristicResult_t result{};
  result.algo = ToOpaque(algorithm);
  result.workspaceSize = answer.workspace_bytes;
  result.state = static_cast<cublasStatus_t>(answer.status);
  result.wavesCount = answer.waves;
  return result;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor;        // NOLINT: this file only defines the C interface
using namespace torpor::shim;  // NOLINT

cublasStatus_t cublasLtCreate(cublasLtHandle_t* lightHandle) {
  if (!lightHandle) return CUBLAS_STATUS_INVALID_VALUE;
  return Guarded([&] { return CublasLtHandles::Get().Create(*lightHandle); });
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t lightHandle) {
  return CublasLtHandles::Get().Destroy(lightHandle) ? CUBLAS_STATUS_SUCCESS
                                                     : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t computeDesc,
                              const void* alpha, const void* A, cublasLtMatrixLayout_t Adesc,
                              const void* B, cublasLtMatrixLayout_t Bdesc, const void* beta,
                              const void* C, cublasLtMatrixLayout_t Cdesc, void* D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspaceSizeInBytes, cudaStream_t stream) {
  return WithHandle(lightHandle, [&](ClientCore& core) {
    wire::CublasLtMatmul command;
    const cublasStatus_t status =
        ReadProblem(computeDesc, Adesc, Bdesc, Cdesc, Ddesc, command.problem);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const LtMatmulDescriptor& matmul = command.problem.matmul;
    if (!ReadScalar(matmul, alpha, command.alpha) || !ReadScalar(matmul, beta, command.beta) ||
        !ResolveStream(core, stream, command.stream)) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    command.A = AddressOf(A);
    command.B = AddressOf(B);
    command.C = AddressOf(C);
    command.D = AddressOf(D);
    if (algo) command.algorithm = FromOpaque(*algo).value_or(wire::CublasLtAlgorithm());
    command.workspace = AddressOf(workspace);
    command.workspace_bytes = workspace ? workspaceSizeInBytes : 0;
    const std::vector<std::uint8_t> fields = wire::Encoded(command);
    return CublasStatusOf(EnqueueOn(core, command.stream, {command.kCallId, fields}));
  });
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t lightHandle, cublasLtMatmulDesc_t operationDesc, cublasLtMatrixLayout_t Adesc,
    cublasLtMatrixLayout_t Bdesc, cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
    cublasLtMatmulPreference_t preference, int requestedAlgoCount,
    cublasLtMatmulHeuristicResult_t* heuristicResultsArray, int* returnAlgoCount) {
  return WithHandle(lightHandle, [&](ClientCore& core) {
    if (!heuristicResultsArray || !returnAlgoCount || requestedAlgoCount < 1)
      return CUBLAS_STATUS_INVALID_VALUE;
    *returnAlgoCount = 0;
    const auto* const wanted = LtValueOf<LtMatmulPreference>(preference);
    if (preference && !wanted) return CUBLAS_STATUS_INVALID_VALUE;
    wire::CublasLtProblem problem;
    cublasStatus_t status = ReadProblem(operationDesc, Adesc, Bdesc, Cdesc, Ddesc, problem);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    wire::CublasLtAlgorithm algorithm;
    if (wanted) algorithm.preference = *wanted;
    algorithm.requested =
        std::min(static_cast<std::uint32_t>(requestedAlgoCount), wire::kMaxLtAlgorithms);
    std::vector<wire::CublasLtAnswer> answers;
    status = CublasLtHeuristics::Get().Ask(core, problem, algorithm.preference, algorithm.requested,
                                           answers);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    for (const wire::CublasLtAnswer& answer : answers) {
      heuristicResultsArray[algorithm.place] = ResultOf(answer, algorithm);
      ++algorithm.place;
    }
    *returnAlgoCount = static_cast<int>(answers.size());
    return answers.empty() ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t lightHandle,
                                       cublasLtMatmulDesc_t operationDesc,
                                       cublasLtMatrixLayout_t Adesc, cublasLtMatrixLayout_t Bdesc,
                                       cublasLtMatrixLayout_t Cdesc, cublasLtMatrixLayout_t Ddesc,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  return WithHandle(lightHandle, [&](ClientCore& core) {
    if (!algo || !result) return CUBLAS_STATUS_INVALID_VALUE;
    const auto algorithm = FromOpaque(*algo);
    if (!algorithm) return CUBLAS_STATUS_INVALID_VALUE;
    wire::CublasLtProblem problem;
    cublasStatus_t status = ReadProblem(operationDesc, Adesc, Bdesc, Cdesc, Ddesc, problem);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    std::vector<wire::CublasLtAnswer> answers;
    status = CublasLtHeuristics::Get().Ask(core, problem, algorithm->preference,
                                           algorithm->requested, answers);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (algorithm->place >= answers.size()) return CUBLAS_STATUS_NOT_SUPPORTED;
    *result = ResultOf(answers[algorithm->place], *algorithm);
    return CUBLAS_STATUS_SUCCESS;
  });
}
