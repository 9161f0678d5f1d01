#include "proto/cuda_api/cublas_arguments.h"

#include "absl/strings/str_cat.h"

namespace torpor::cuda_api {

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
                    absl::StrCat(symbol_, ": invalid or destroyed handle or stream"));
}

CallStatus CublasInvocation::Done(cublasStatus_t status) const {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return CallFailed(status, absl::StrCat(symbol_, ": cuBLAS returned status ", int{status}));
}

}  // namespace torpor::cuda_api
