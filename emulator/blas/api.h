#pragma once

#include <cublas_v2.h>

#include <limits>
#include <new>
#include <utility>

#include "emulator/blas/handle.h"

namespace torpor::emulator {

// Calls `body(cublasContext&)`, or returns CUBLAS_STATUS_NOT_INITIALIZED for a null handle. Turns
// exceptions into statuses: std::bad_alloc into ALLOC_FAILED, others into INTERNAL_ERROR.
template <typename Body>
cublasStatus_t WithHandle(cublasHandle_t handle, Body&& body) noexcept {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  try {
    return std::forward<Body>(body)(*handle);
  } catch (const std::bad_alloc&) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  } catch (...) {
    return CUBLAS_STATUS_INTERNAL_ERROR;
  }
}

// Whether all counts fit the 32-bit integers of OpenBLAS.
template <typename... Counts>
bool FitsBlas(Counts... counts) {
  const auto fits = [](std::int64_t count) {
    return count >= std::numeric_limits<int>::min() && count <= std::numeric_limits<int>::max();
  };
  return (fits(counts) && ...);
}

// Returns CUBLAS_STATUS_NOT_SUPPORTED; the first call for each `function` prints that the emulator
// lacks it.
int BlasNotSupported(const char* function);

}  // namespace torpor::emulator
