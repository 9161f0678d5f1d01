#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>

#include "client_shim/cublas/handle_table.h"
#include "client_shim/cublas/overrides.h"

// What is the same on every node: versions, names, logging.
namespace {

struct StatusName {
  cublasStatus_t status;
  const char* name;
  const char* meaning;
};

constexpr StatusName kStatusNames[] = {
    {CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    {CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED",
     "the library was not initialized"},
    {CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE",
     "an unsupported value or parameter was passed to the function"},
    {CUBLAS_STATUS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH",
     "the function requires a feature that the device architecture lacks"},
    {CUBLAS_STATUS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR",
     "an access to GPU memory space failed"},
    {CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED",
     "the function failed to launch on the GPU"},
    {CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED",
     "the functionality is not supported"},
    {CUBLAS_STATUS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR", "the license check failed"},
};

// What the program has set; it is never called.
std::atomic<cublasLogCallback>& Logger() {
  static std::atomic<cublasLogCallback> logger{nullptr};
  return logger;
}

const StatusName* FindStatus(cublasStatus_t status) {
  for (const StatusName& known : kStatusNames)
    if (known.status == status) return &known;
  return nullptr;
}

}  // namespace

// The version of the headers that this library implements, whichever cuBLAS the node has.
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version) {
  if (!torpor::shim::CublasHandleTable::Get().Find(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (!value) return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUBLAS_VER_MAJOR;
      return CUBLAS_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = CUBLAS_VER_MINOR;
      return CUBLAS_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = CUBLAS_VER_PATCH;
      return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

size_t cublasGetCudartVersion() { return CUDART_VERSION; }

const char* cublasGetStatusName(cublasStatus_t status) {
  const StatusName* known = FindStatus(status);
  return known ? known->name : "<unknown>";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  const StatusName* known = FindStatus(status);
  return known ? known->meaning : "unknown status";
}

void cublasXerbla(const char* srName, int info) {
  std::fprintf(stderr, " ** On entry to %s parameter number %d had an illegal value\n", srName,
               info);
}

// There is no log to configure, and nothing to call back with: the calls run elsewhere.
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
