// Handles, their settings, copies of vectors and matrices, and the answer of unsupported functions.
#include <algorithm>
#include <memory>

#include "emulator/blas/api.h"
#include "emulator/blas/blas_threads.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// Returns a setting of the handle.
template <typename T>
cublasStatus_t Get(cublasHandle_t handle, T* target, T cublasContext::*member) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (target == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    *target = context.*member;
    return CUBLAS_STATUS_SUCCESS;
  });
}

// Changes a setting of the handle; calls in flight keep the old value.
template <typename T>
cublasStatus_t Set(cublasHandle_t handle, T value, T cublasContext::*member) {
  return WithHandle(handle, [&](cublasContext& context) {
    context.*member = value;
    return CUBLAS_STATUS_SUCCESS;
  });
}

// Copies a strided vector as a matrix of rows with one element.
cublasStatus_t Copy2D(const void* from, size_t from_pitch, void* to, size_t to_pitch, size_t width,
                      size_t height, CUstream stream, bool asynchronous) {
  const DriverCalls* driver = DriverCalls::Get();
  if (driver == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(from);
  copy.srcPitch = from_pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(to);
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  const CUresult result =
      asynchronous ? driver->memcpy_2d_async(&copy, stream) : driver->memcpy_2d(&copy);
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

// Steps are in elements; the copy is as wide as one element.
cublasStatus_t CopyVector(int n, int element, const void* from, int from_step, void* to,
                          int to_step, CUstream stream, bool asynchronous) {
  if (n < 0 || element <= 0 || from_step <= 0 || to_step <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (n == 0) return CUBLAS_STATUS_SUCCESS;
  const auto bytes = static_cast<size_t>(element);
  return Copy2D(from, bytes * static_cast<size_t>(from_step), to,
                bytes * static_cast<size_t>(to_step), bytes, static_cast<size_t>(n), stream,
                asynchronous);
}

// Copies a matrix column by column; leading dimensions are in elements.
cublasStatus_t CopyMatrix(int rows, int columns, int element, const void* from, int from_leading,
                          void* to, int to_leading, CUstream stream, bool asynchronous) {
  if (rows < 0 || columns < 0 || element <= 0 || from_leading < std::max(rows, 1) ||
      to_leading < std::max(rows, 1)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (rows == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
  const auto bytes = static_cast<size_t>(element);
  return Copy2D(from, bytes * static_cast<size_t>(from_leading), to,
                bytes * static_cast<size_t>(to_leading), bytes * static_cast<size_t>(rows),
                static_cast<size_t>(columns), stream, asynchronous);
}

}  // namespace

extern "C" {

// Needs a current context, as NVIDIA's library does.
cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const DriverCalls* driver = DriverCalls::Get();
  CUcontext current = nullptr;
  if (driver == nullptr || driver->ctx_get_current(&current) != CUDA_SUCCESS ||
      current == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  LimitBlasThreads();
  auto created = std::unique_ptr<cublasContext>(new (std::nothrow) cublasContext);
  if (created == nullptr) return CUBLAS_STATUS_ALLOC_FAILED;
  created->driver = driver;
  const std::size_t workspace = driver->cublas_memory();
  if (workspace != 0 && driver->mem_alloc(&created->workspace, workspace) != CUDA_SUCCESS) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  }
  *handle = created.release();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  return WithHandle(handle, [](cublasContext& context) {
    // As NVIDIA's does; queued work needs nothing of the handle.
    context.driver->stream_synchronize(context.stream);
    context.driver->mem_free(context.workspace);
    delete &context;
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUBLAS_VER_MAJOR;
      break;
    case MINOR_VERSION:
      *value = CUBLAS_VER_MINOR;
      break;
    case PATCH_LEVEL:
      *value = CUBLAS_VER_PATCH;
      break;
    default:
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasGetCudartVersion(void) { return 13000; }

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return Set<CUstream>(handle, stream, &cublasContext::stream);
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  return Get<CUstream>(handle, stream, &cublasContext::stream);
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  return Set(handle, mode, &cublasContext::pointer_mode);
}
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return Get(handle, mode, &cublasContext::pointer_mode);
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return Set(handle, mode, &cublasContext::math_mode);
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return Get(handle, mode, &cublasContext::math_mode);
}
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  return Set(handle, mode, &cublasContext::atomics_mode);
}
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  return Get(handle, mode, &cublasContext::atomics_mode);
}
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  return Set(handle, count, &cublasContext::sm_count_target);
}
cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int* count) {
  return Get(handle, count, &cublasContext::sm_count_target);
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t size) {
  return WithHandle(handle, [&](cublasContext& context) {
    // The emulator needs no workspace, but rejects a bad one where cuBLAS does.
    constexpr std::uintptr_t kAlignment = 256;
    if (reinterpret_cast<std::uintptr_t>(workspace) % kAlignment != 0) {
      return CUBLAS_STATUS_INVALID_VALUE;
    }
    return Accessible(context, {workspace, workspace == nullptr ? 0 : size, true})
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
  });
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "unknown cuBLAS status";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an invalid value was passed as an argument";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "the device lacks a feature that this needs";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "an access to GPU memory failed";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the work could not be started on the GPU";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality is not supported";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "a license is required";
  }
  return "unknown cuBLAS status";
}

// There is no log: the settings are taken and lead nowhere.
cublasStatus_t cublasLoggerConfigure(int, int, int, const char*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetLoggerCallback(cublasLogCallback) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetLoggerCallback(cublasLogCallback* callback) {
  if (callback == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *callback = nullptr;
  return CUBLAS_STATUS_SUCCESS;
}

// The addresses tell which side is the host, so Set and Get are the same copy.
cublasStatus_t cublasSetVector(int n, int element, const void* x, int incx, void* y, int incy) {
  return CopyVector(n, element, x, incx, y, incy, nullptr, false);
}
cublasStatus_t cublasGetVector(int n, int element, const void* x, int incx, void* y, int incy) {
  return CopyVector(n, element, x, incx, y, incy, nullptr, false);
}
cublasStatus_t cublasSetVectorAsync(int n, int element, const void* x, int incx, void* y, int incy,
                                    cudaStream_t stream) {
  return CopyVector(n, element, x, incx, y, incy, stream, true);
}
cublasStatus_t cublasGetVectorAsync(int n, int element, const void* x, int incx, void* y, int incy,
                                    cudaStream_t stream) {
  return CopyVector(n, element, x, incx, y, incy, stream, true);
}
cublasStatus_t cublasSetMatrix(int rows, int columns, int element, const void* a, int lda, void* b,
                               int ldb) {
  return CopyMatrix(rows, columns, element, a, lda, b, ldb, nullptr, false);
}
cublasStatus_t cublasGetMatrix(int rows, int columns, int element, const void* a, int lda, void* b,
                               int ldb) {
  return CopyMatrix(rows, columns, element, a, lda, b, ldb, nullptr, false);
}
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int element, const void* a, int lda,
                                    void* b, int ldb, cudaStream_t stream) {
  return CopyMatrix(rows, columns, element, a, lda, b, ldb, stream, true);
}
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int element, const void* a, int lda,
                                    void* b, int ldb, cudaStream_t stream) {
  return CopyMatrix(rows, columns, element, a, lda, b, ldb, stream, true);
}

}  // extern "C"
