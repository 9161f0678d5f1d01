#pragma once

#include <cuda.h>
#include <driver_types.h>

#include <string_view>

#include "absl/status/status.h"
#include "server/executor/gpu/cuda_driver.h"

// The one place that translates between the driver's errors, the runtime's and Status.
namespace torpor::executor {

// The runtime numbers its errors as the driver does.
constexpr cudaError_t ToRuntimeError(CUresult result) { return static_cast<cudaError_t>(result); }

// Whether the context is lost: from then on every call of the process gives this error.
bool IsSticky(CUresult result);
bool IsSticky(cudaError_t error);

// `what` names the driver's call and its subject. Success gives OkStatus. The result itself can
// be asked back with ResultOf.
absl::Status ToStatus(const CudaDriver& driver, CUresult result, std::string_view what);

// The driver's result behind a status; CUDA_ERROR_UNKNOWN for a failure that is not the driver's,
// CUDA_SUCCESS for OkStatus.
CUresult ResultOf(const absl::Status& status);

}  // namespace torpor::executor
