#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>

#include "client_shim/cublas/overrides.h"

// cublasSetVector, cublasGetMatrix and so on, carried out as copies of the runtime: a vector is a
// matrix of one row whose leading dimension is the increment.
namespace {

struct RuntimeCopies {
  decltype(&::cudaMemcpy2D) copy = nullptr;
  decltype(&::cudaMemcpy2DAsync) copy_async = nullptr;
};

// The copies of our libcudart, loaded by the program already or found beside this library. Not
// linked: a program without such copies need not load libcudart.
const RuntimeCopies& Runtime() {
  static const RuntimeCopies copies = [] {
    RuntimeCopies found;
    if (void* library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL)) {
      found.copy = reinterpret_cast<decltype(found.copy)>(dlsym(library, "cudaMemcpy2D"));
      found.copy_async =
          reinterpret_cast<decltype(found.copy_async)>(dlsym(library, "cudaMemcpy2DAsync"));
    }
    return found;
  }();
  return copies;
}

// Rows, columns and leading dimensions count elements; a column is contiguous.
struct MatrixCopy {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t element_bytes;
  const void* source;
  std::int64_t source_leading;
  void* target;
  std::int64_t target_leading;
  cudaMemcpyKind kind;
};

bool IsValid(const MatrixCopy& copy) {
  return copy.rows >= 0 && copy.columns >= 0 && copy.element_bytes > 0 &&
         copy.source_leading >= copy.rows && copy.target_leading >= copy.rows &&
         copy.source_leading > 0 && copy.target_leading > 0;
}

cublasStatus_t StatusOf(cudaError_t error) {
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

cublasStatus_t Copy(MatrixCopy copy, const cudaStream_t* stream) {
  if (!IsValid(copy)) return CUBLAS_STATUS_INVALID_VALUE;
  if (copy.rows == 0 || copy.columns == 0) return CUBLAS_STATUS_SUCCESS;
  // A matrix without gaps is one long row.
  if (copy.rows == copy.source_leading && copy.rows == copy.target_leading) {
    copy.rows *= copy.columns;
    copy.source_leading = copy.target_leading = copy.rows;
    copy.columns = 1;
  }
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::size_t>(elements) * static_cast<std::size_t>(copy.element_bytes);
  };
  const RuntimeCopies& runtime = Runtime();
  if (!runtime.copy || !runtime.copy_async) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto columns = static_cast<std::size_t>(copy.columns);
  if (!stream) {
    return StatusOf(runtime.copy(copy.target, bytes(copy.target_leading), copy.source,
                                 bytes(copy.source_leading), bytes(copy.rows), columns, copy.kind));
  }
  return StatusOf(runtime.copy_async(copy.target, bytes(copy.target_leading), copy.source,
                                     bytes(copy.source_leading), bytes(copy.rows), columns,
                                     copy.kind, *stream));
}

MatrixCopy VectorCopy(std::int64_t n, std::int64_t element_bytes, const void* x, std::int64_t incx,
                      void* y, std::int64_t incy, cudaMemcpyKind kind) {
  return {1, n, element_bytes, x, incx, y, incy, kind};
}

}  // namespace

// The 32-bit and the 64-bit form of an entry differ in the integer type only.
#define TORPOR_COPY_ENTRIES(SUFFIX, INT)                                                           \
  cublasStatus_t cublasSetVector##SUFFIX(INT n, INT elemSize, const void* x, INT incx,             \
                                         void* devicePtr, INT incy) {                              \
    return Copy(VectorCopy(n, elemSize, x, incx, devicePtr, incy, cudaMemcpyHostToDevice),         \
                nullptr);                                                                          \
  }                                                                                                \
  cublasStatus_t cublasGetVector##SUFFIX(INT n, INT elemSize, const void* x, INT incx, void* y,    \
                                         INT incy) {                                               \
    return Copy(VectorCopy(n, elemSize, x, incx, y, incy, cudaMemcpyDeviceToHost), nullptr);       \
  }                                                                                                \
  cublasStatus_t cublasSetVectorAsync##SUFFIX(INT n, INT elemSize, const void* hostPtr, INT incx,  \
                                              void* devicePtr, INT incy, cudaStream_t stream) {    \
    return Copy(VectorCopy(n, elemSize, hostPtr, incx, devicePtr, incy, cudaMemcpyHostToDevice),   \
                &stream);                                                                          \
  }                                                                                                \
  cublasStatus_t cublasGetVectorAsync##SUFFIX(INT n, INT elemSize, const void* devicePtr,          \
                                              INT incx, void* hostPtr, INT incy,                   \
                                              cudaStream_t stream) {                               \
    return Copy(VectorCopy(n, elemSize, devicePtr, incx, hostPtr, incy, cudaMemcpyDeviceToHost),   \
                &stream);                                                                          \
  }                                                                                                \
  cublasStatus_t cublasSetMatrix##SUFFIX(INT rows, INT cols, INT elemSize, const void* A, INT lda, \
                                         void* B, INT ldb) {                                       \
    return Copy({rows, cols, elemSize, A, lda, B, ldb, cudaMemcpyHostToDevice}, nullptr);          \
  }                                                                                                \
  cublasStatus_t cublasGetMatrix##SUFFIX(INT rows, INT cols, INT elemSize, const void* A, INT lda, \
                                         void* B, INT ldb) {                                       \
    return Copy({rows, cols, elemSize, A, lda, B, ldb, cudaMemcpyDeviceToHost}, nullptr);          \
  }                                                                                                \
  cublasStatus_t cublasSetMatrixAsync##SUFFIX(INT rows, INT cols, INT elemSize, const void* A,     \
                                              INT lda, void* B, INT ldb, cudaStream_t stream) {    \
    return Copy({rows, cols, elemSize, A, lda, B, ldb, cudaMemcpyHostToDevice}, &stream);          \
  }                                                                                                \
  cublasStatus_t cublasGetMatrixAsync##SUFFIX(INT rows, INT cols, INT elemSize, const void* A,     \
                                              INT lda, void* B, INT ldb, cudaStream_t stream) {    \
    return Copy({rows, cols, elemSize, A, lda, B, ldb, cudaMemcpyDeviceToHost}, &stream);          \
  }

TORPOR_COPY_ENTRIES(, int)
TORPOR_COPY_ENTRIES(_64, int64_t)
