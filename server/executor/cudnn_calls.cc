#include "server/executor/cudnn_calls.h"

#include <algorithm>
#include <vector>

#include "proto/cuda_api/cudnn_arguments.h"
#include "proto/cuda_api/cudnn_values.h"
#include "proto/cuda_api/refusals.h"

namespace torpor::executor {

using cuda_api::CallStatus;
using cuda_api::CudnnInvocation;

namespace {

constexpr char kAlgorithms[] = "cudnnGetConvolution...Algorithm_v7";

// Asks one of the six functions, which differ in the order of their descriptors and in the type of
// their answers; `ask` passes the descriptors, then what it is given.
template <typename Performance, typename Ask>
CallStatus Answers(const CudnnInvocation& invocation, std::uint32_t requested, Ask ask,
                   wire::CudnnConvolutionAlgorithmsResult& result) {
  std::vector<Performance> found(requested);
  int count = 0;
  CallStatus status = invocation.Done(ask(static_cast<int>(requested), &count, found.data()));
  if (!status.ok()) return status;
  found.resize(static_cast<std::size_t>(std::clamp(count, 0, static_cast<int>(requested))));
  for (const Performance& one : found) {
    result.algorithms.push_back(
        {one.algo, one.status, one.time, one.memory, one.determinism, one.mathType});
  }
  return status;
}

}  // namespace

void CudnnCalls::ReleaseHandle() {
  if (handle_ != nullptr) pool_.Return(handle_);
  handle_ = nullptr;
}

cudnnHandle_t CudnnCalls::BeginCall(std::uint64_t stream) {
  descriptors_.Trim();
  CUstream real = nullptr;
  if (functions().cudnnSetStream == nullptr || streams_.Use(stream, real) != CUDA_SUCCESS) {
    return nullptr;
  }
  const bool is_new = handle_ == nullptr;
  if (is_new) handle_ = pool_.Take();
  if (handle_ == nullptr) return nullptr;
  if (is_new || handle_stream_ != real) {
    if (functions().cudnnSetStream(handle_, real) != CUDNN_STATUS_SUCCESS) {
      ReleaseHandle();
      return nullptr;
    }
    handle_stream_ = real;
  }
  return handle_;
}

CallStatus CudnnCalls::CudnnConvolutionAlgorithms(const wire::CudnnConvolutionAlgorithms& command,
                                                  wire::CudnnConvolutionAlgorithmsResult& result) {
  if (!DnnIsValid(command.x) || !DnnIsValid(command.w) || !DnnIsValid(command.convolution) ||
      !DnnIsValid(command.y) || command.direction > 2 || command.requested < 1 ||
      command.requested > wire::kMostDnnAlgorithms) {
    return cuda_api::NonsenseArguments(CUDNN_STATUS_BAD_PARAM, kAlgorithms);
  }
  const cuda_api::CudnnFunctions& f = functions();
  const bool measured = command.is_measured != 0;
  const auto forward =
      measured ? f.cudnnFindConvolutionForwardAlgorithm : f.cudnnGetConvolutionForwardAlgorithm_v7;
  const auto data = measured ? f.cudnnFindConvolutionBackwardDataAlgorithm
                             : f.cudnnGetConvolutionBackwardDataAlgorithm_v7;
  const auto filter = measured ? f.cudnnFindConvolutionBackwardFilterAlgorithm
                               : f.cudnnGetConvolutionBackwardFilterAlgorithm_v7;
  const bool exists = forward != nullptr && data != nullptr && filter != nullptr;
  CudnnInvocation invocation(*this, kAlgorithms, exists, StreamSet::kLegacy);
  const auto x = invocation.Real(command.x);
  const auto w = invocation.Real(command.w);
  const auto convolution = invocation.Real(command.convolution);
  const auto y = invocation.Real(command.y);
  if (!exists || !invocation.ok()) return invocation.refusal();
  switch (command.direction) {
    case 0:
      return Answers<cudnnConvolutionFwdAlgoPerf_t>(
          invocation, command.requested,
          [&](auto... rest) { return forward(invocation.handle(), x, w, convolution, y, rest...); },
          result);
    case 1:
      return Answers<cudnnConvolutionBwdDataAlgoPerf_t>(
          invocation, command.requested,
          [&](auto... rest) { return data(invocation.handle(), w, y, convolution, x, rest...); },
          result);
    default:
      return Answers<cudnnConvolutionBwdFilterAlgoPerf_t>(
          invocation, command.requested,
          [&](auto... rest) { return filter(invocation.handle(), x, y, convolution, w, rest...); },
          result);
  }
}

}  // namespace torpor::executor
