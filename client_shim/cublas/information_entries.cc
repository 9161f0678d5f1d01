#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>

#include "client_shim/cublas/handle_table.h"
#include "client_shim/cublas/overrides.h"
#include "client_shim/cublas/status.h"

// Entries with the same answer on every node: versions, names, logging.
namespace {

// The program's callback for log lines, which is never called.
std::atomic<cublasLogCallback>& Logger() {
  static std::atomic<cublasLogCallback> logger{nullptr};
  return logger;
}

}  // namespace

// The version of the headers that this library implements, not the version of the node's cuBLAS.
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version) {
  if (!torpor::shim::CublasHandleTable::Get().Find(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  return torpor::shim::PropertyOfCublas(type, value);
}

size_t cublasGetCudartVersion() { return CUDART_VERSION; }

const char* cublasGetStatusName(cublasStatus_t status) {
  return torpor::shim::NameOfStatus(status);
}

const char* cublasGetStatusString(cublasStatus_t status) {
  return torpor::shim::MeaningOfStatus(status);
}

void cublasXerbla(const char* srName, int info) {
  std::fprintf(stderr, " ** On entry to %s parameter number %d had an illegal value\n", srName,
               info);
}

// Has no effect: the calls run in the executor, whose log the program cannot reach.
cublasStatus_t cublasLoggerConfigure(int, int, int, const char*) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasSetLoggerCallback(cublasLogCallback userCallback) {
  Logger() = userCallback;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetLoggerCallback(cublasLogCallback* userCallback) {
  if (!userCallback) return CUBLAS_STATUS_INVALID_VALUE;
  *userCallback = Logger();
  return CUBLAS_STATUS_SUCCESS;
}
