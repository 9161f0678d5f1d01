#pragma once

#include <cublas_v2.h>

#include <limits>
#include <new>
#include <utility>

#include "emulator/blas/handle.h"

namespace torpor::emulator {

// Runs `body` with a live handle; lets no exception out.
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

// Whether OpenBLAS, whose integers have 32 bits, can count so far.
template <typename... Counts>
bool FitsBlas(Counts... counts) {
  const auto fits = [](std::int64_t count) {
    return count >= std::numeric_limits<int>::min() && count <= std::numeric_limits<int>::max();
  };
  return (fits(counts) && ...);
}

// Says once for each `function` that the emulator lacks it; CUBLAS_STATUS_NOT_SUPPORTED.
int BlasNotSupported(const char* function);

}  // namespace torpor::emulator
