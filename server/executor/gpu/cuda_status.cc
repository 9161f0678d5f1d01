#include "server/executor/gpu/cuda_status.h"

#include <charconv>
#include <optional>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace torpor::executor {
namespace {

constexpr const char* kPayloadUrl = "torpor/cuda_result";

absl::StatusCode CodeOf(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
      return absl::StatusCode::kInvalidArgument;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return absl::StatusCode::kResourceExhausted;
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
      return absl::StatusCode::kNotFound;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return absl::StatusCode::kUnimplemented;
    default:
      return IsSticky(result) ? absl::StatusCode::kDataLoss : absl::StatusCode::kInternal;
  }
}

}  // namespace

bool IsSticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return true;
    default:
      return false;
  }
}

bool MayBeSticky(CUresult result) {
  return result == CUDA_ERROR_UNKNOWN || result == CUDA_ERROR_DEVICE_UNAVAILABLE ||
         result == CUDA_ERROR_SYSTEM_NOT_READY;
}

bool IsSticky(cudaError_t error) { return IsSticky(static_cast<CUresult>(error)); }

absl::Status ToStatus(const CudaDriver& driver, CUresult result, std::string_view what) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  driver.GetErrorName(result, &name);
  driver.GetErrorString(result, &text);
  absl::Status status(CodeOf(result),
                      absl::StrCat(absl::string_view(what.data(), what.size()), ": ",
                                   name != nullptr ? name : "unknown CUDA error", " (",
                                   text != nullptr ? text : "no description", ")"));
  status.SetPayload(kPayloadUrl, absl::Cord(absl::StrCat(static_cast<int>(result))));
  return status;
}

CUresult ResultOf(const absl::Status& status) {
  if (status.ok()) return CUDA_SUCCESS;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return CUDA_ERROR_UNKNOWN;
  const std::string digits(*payload);
  int result = CUDA_ERROR_UNKNOWN;
  std::from_chars(digits.data(), digits.data() + digits.size(), result);
  return static_cast<CUresult>(result);
}

}  // namespace torpor::executor
