#include "client_shim/cublas/status.h"
#include "client_shim/cublasLt/overrides.h"
#include "client_shim/cublaslt/heuristics.h"

// Versions, names, logging, the cache of heuristics.
using torpor::shim::CublasLtHeuristics;

cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
  return torpor::shim::PropertyOfCublas(type, value);
}

const char* cublasLtGetStatusName(cublasStatus_t status) {
  return torpor::shim::NameOfStatus(status);
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return torpor::shim::MeaningOfStatus(status);
}

cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t* capacity) {
  if (!capacity) return CUBLAS_STATUS_INVALID_VALUE;
  *capacity = CublasLtHeuristics::Get().capacity();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t capacity) {
  CublasLtHeuristics::Get().SetCapacity(capacity);
  return CUBLAS_STATUS_SUCCESS;
}

// The settings of the log have no effect: the calls run in the executor.
cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetFile(FILE*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerOpenFile(const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetLevel(int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerSetMask(int) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtLoggerForceDisable() { return CUBLAS_STATUS_SUCCESS; }
