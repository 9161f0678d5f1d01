// The C interface of cuBLASLt, but for the descriptors (nvidia/cublaslt/).
#include <cublasLt.h>

#include <cstring>
#include <new>

#include "emulator/blas/blas_threads.h"
#include "emulator/blas/lt/matmul.h"
#include "emulator/library/unsupported.h"

using namespace torpor;            // NOLINT: this file only defines the C interface
using namespace torpor::emulator;  // NOLINT

// Nothing is set on a handle.
struct cublasLtContext {};

namespace torpor::emulator {

int LtNotSupported(const char* function) {
  SayUnsupported(function);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace torpor::emulator

namespace {

// The identity that heuristics write into each algorithm: there is only one.
constexpr std::uint64_t kOnlyAlgorithm = 0x746f72706f722d31;

// Reads the program's descriptors; returns false if one is null or invalid.
bool ReadDescriptors(cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
                     cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                     LtProblem& problem) {
  const auto* const operation = LtValueOf<LtMatmulDescriptor>(matmul);
  if (operation == nullptr) return false;
  problem.matmul = *operation;
  const auto read = [](cublasLtMatrixLayout_t layout, LtMatrixLayout& into) {
    const auto* const value = LtValueOf<LtMatrixLayout>(layout);
    if (value != nullptr) into = *value;
    return value != nullptr;
  };
  return read(a, problem.a_layout) && read(b, problem.b_layout) && read(c, problem.c_layout) &&
         read(d, problem.d_layout);
}

// The only result of every heuristic query.
cublasLtMatmulHeuristicResult_t OnlyResult() {
  cublasLtMatmulHeuristicResult_t result{};
  result.algo.data[0] = kOnlyAlgorithm;
  result.state = CUBLAS_STATUS_SUCCESS;
  result.wavesCount = 1;
  return result;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (DriverCalls::Get() == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  LimitBlasThreads();
  *handle = new (std::nothrow) cublasLtContext;
  return *handle == nullptr ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void*, size_t, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (algo != nullptr && algo->data[0] != kOnlyAlgorithm) return CUBLAS_STATUS_INVALID_VALUE;
  LtProblem problem;
  if (!ReadDescriptors(matmul, a_layout, b_layout, c_layout, d_layout, problem)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  problem.a = a;
  problem.b = b;
  problem.c = c;
  problem.d = d;
  problem.alpha = alpha;
  problem.beta = beta;
  try {
    return QueueLt(*DriverCalls::Get(), stream, problem);
  } catch (const std::bad_alloc&) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a_layout,
    cublasLtMatrixLayout_t b_layout, cublasLtMatrixLayout_t c_layout,
    cublasLtMatrixLayout_t d_layout, cublasLtMatmulPreference_t, int requested,
    cublasLtMatmulHeuristicResult_t* results, int* returned) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (results == nullptr || returned == nullptr || requested < 1) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *returned = 0;
  LtProblem problem;
  if (!ReadDescriptors(matmul, a_layout, b_layout, c_layout, d_layout, problem)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (const auto status = ValidateLt(problem); status != CUBLAS_STATUS_SUCCESS) return status;
  results[0] = OnlyResult();
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                                       cublasLtMatrixLayout_t a_layout,
                                       cublasLtMatrixLayout_t b_layout,
                                       cublasLtMatrixLayout_t c_layout,
                                       cublasLtMatrixLayout_t d_layout,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (algo == nullptr || algo->data[0] != kOnlyAlgorithm) return CUBLAS_STATUS_INVALID_VALUE;
  int returned = 0;
  return cublasLtMatmulAlgoGetHeuristic(handle, matmul, a_layout, b_layout, c_layout, d_layout,
                                        nullptr, 1, result, &returned);
}

// There is no log: the settings are taken and lead nowhere.
cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetFile(FILE*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerOpenFile(const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetLevel(int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetMask(int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerForceDisable() { return CUBLAS_STATUS_SUCCESS; }

}  // extern "C"
