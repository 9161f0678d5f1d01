#include "server/executor/gpu/call_status.h"

#include <driver_types.h>

#include <string>

#include "server/executor/gpu/cuda_status.h"

namespace torpor::executor {
namespace {

cudaError_t ErrorOf(const absl::Status& status) {
  const CUresult result = ResultOf(status);
  if (result != CUDA_ERROR_UNKNOWN) return ToRuntimeError(result);
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return cudaErrorInvalidValue;
    case absl::StatusCode::kNotFound:
      return cudaErrorInvalidResourceHandle;
    case absl::StatusCode::kResourceExhausted:
      return cudaErrorMemoryAllocation;
    case absl::StatusCode::kUnimplemented:
      return cudaErrorNotSupported;
    default:
      return cudaErrorUnknown;
  }
}

}  // namespace

cuda_api::CallStatus ToCallStatus(const CudaDriver& driver, CUresult result,
                                  std::string_view what) {
  if (result == CUDA_SUCCESS) return {};
  return ToCallStatus(ToStatus(driver, result, what), {});
}

cuda_api::CallStatus ToCallStatus(const absl::Status& status, std::string_view what) {
  if (status.ok()) return {};
  std::string message(what);
  if (!message.empty()) message += ": ";
  message += std::string(status.message());
  return cuda_api::CallFailed(ErrorOf(status), std::move(message));
}

cuda_api::CallStatus NotOwned(std::string_view what) {
  return cuda_api::CallFailed(
      cudaErrorInvalidValue,
      std::string(what) + ": no memory or array of this session, or not all of it");
}

}  // namespace torpor::executor
