#include "proto/cuda_api/cublas_arguments.h"

#include "absl/strings/str_cat.h"

namespace torpor::cuda_api {

DeviceArgument::DeviceArgument(CublasEnvironment& environment, std::uint64_t address,
                               std::uint64_t bytes, Access access) {
  if (bytes == 0) return;
  pointer_ = environment.Resolve(address, bytes, access);
  ok_ = pointer_ != nullptr;
}

CallStatus NonsenseArguments(const char* symbol) {
  return CallFailed(CUBLAS_STATUS_INVALID_VALUE,
                    absl::StrCat(symbol, ": an argument is outside its function's rules"));
}

CallStatus ForeignMemory(const char* symbol) {
  return CallFailed(CUBLAS_STATUS_INVALID_VALUE,
                    absl::StrCat(symbol,
                                 ": a pointer with its extent is not wholly inside device"
                                 " memory of this session"));
}

CublasInvocation::CublasInvocation(CublasEnvironment& environment, const char* symbol, bool exists,
                                   std::uint64_t handle, cublasPointerMode_t mode)
    : symbol_(symbol), exists_(exists) {
  if (exists) real_ = environment.BeginCall(handle, mode);
}

CallStatus CublasInvocation::refusal() const {
  if (!exists_) {
    return CallFailed(CUBLAS_STATUS_NOT_SUPPORTED,
                      absl::StrCat(symbol_, ": the cuBLAS library of this node lacks it"));
  }
  return CallFailed(CUBLAS_STATUS_NOT_INITIALIZED,
                    absl::StrCat(symbol_, ": the handle, or its stream, does not live"));
}

CallStatus CublasInvocation::Done(cublasStatus_t status) const {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return CallFailed(status, absl::StrCat(symbol_, ": cuBLAS returned status ", int{status}));
}

}  // namespace torpor::cuda_api
