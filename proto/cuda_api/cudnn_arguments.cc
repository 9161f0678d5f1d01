#include "proto/cuda_api/cudnn_arguments.h"

#include "absl/strings/str_cat.h"

namespace torpor::cuda_api {

CudnnInvocation::CudnnInvocation(CudnnEnvironment& environment, const char* symbol, bool exists,
                                 std::uint64_t stream)
    : environment_(environment), symbol_(symbol), exists_(exists) {
  if (exists) real_ = environment.BeginCall(stream);
}

CallStatus CudnnInvocation::refusal() const {
  if (!exists_) {
    return CallFailed(CUDNN_STATUS_NOT_SUPPORTED,
                      absl::StrCat(symbol_, ": the cuDNN library of this node lacks it"));
  }
  if (real_ == nullptr) {
    return CallFailed(
        CUDNN_STATUS_NOT_INITIALIZED,
        absl::StrCat(symbol_, ": no cuDNN on the node, or an invalid or destroyed stream"));
  }
  return CallFailed(CUDNN_STATUS_NOT_SUPPORTED,
                    absl::StrCat(symbol_, ": cuDNN refused a descriptor"));
}

CallStatus CudnnInvocation::Done(cudnnStatus_t status) const {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  return CallFailed(status, absl::StrCat(symbol_, ": cuDNN returned status ", int{status}));
}

}  // namespace torpor::cuda_api
