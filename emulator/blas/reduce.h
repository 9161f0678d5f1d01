#pragma once

#include <cublas_v2.h>

#include <initializer_list>

#include "emulator/blas/api.h"

namespace torpor::emulator {

// Runs a function with one result, `compute()`. In device pointer mode the result is written in
// stream order; in host pointer mode the call waits. `inputs` are checked first.
template <typename R, typename Compute>
cublasStatus_t Reduce(cublasHandle_t handle, std::initializer_list<AccessExtent> inputs, R* result,
                      Compute compute) {
  return WithHandle(handle, [&](cublasContext& context) {
    if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    for (const AccessExtent& input : inputs) {
      if (!Accessible(context, input)) return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    const bool to_device = context.pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
    const AccessExtent output{result, to_device ? sizeof(R) : 0, true};
    const auto queued = Enqueue(context, {output}, [=] { *result = compute(); });
    if (queued != CUBLAS_STATUS_SUCCESS || to_device) return queued;
    return context.driver->stream_synchronize(context.stream) == CUDA_SUCCESS
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
  });
}

}  // namespace torpor::emulator
