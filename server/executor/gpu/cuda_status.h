#pragma once

#include <cuda.h>
#include <driver_types.h>

#include <string_view>

#include "absl/status/status.h"
#include "server/executor/gpu/cuda_driver.h"

// Translation between errors of the driver, errors of the runtime, and Status.
namespace torpor::executor {

// The runtime uses the driver's error numbers.
constexpr cudaError_t ToRuntimeError(CUresult result) { return static_cast<cudaError_t>(result); }

// Whether the error means a lost context: every later call of the process returns the same error.
bool IsSticky(CUresult result);
bool IsSticky(cudaError_t error);
// Whether the error comes from lost contexts too: another call tells.
bool MayBeSticky(CUresult result);

// `what` names the driver's call and the subject. CUDA_SUCCESS becomes OkStatus. ResultOf returns
// the driver's result of the status.
absl::Status ToStatus(const CudaDriver& driver, CUresult result, std::string_view what);

// Returns the driver's result behind `status`: CUDA_SUCCESS for OkStatus, CUDA_ERROR_UNKNOWN for an
// error that did not come from the driver.
CUresult ResultOf(const absl::Status& status);

}  // namespace torpor::executor
