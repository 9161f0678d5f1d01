#include "server/executor/library/cudnn_calls.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nvidia/cudnn/graph_checks.h"
#include "proto/cuda_api/cudnn_arguments.h"
#include "proto/cuda_api/cudnn_values.h"
#include "proto/cuda_api/device_arguments.h"
#include "proto/cuda_api/refusals.h"

namespace torpor::executor {

using cuda_api::CallStatus;
using cuda_api::CudnnInvocation;

namespace {

constexpr char kFinalize[] = "cudnnBackendFinalize";
constexpr char kExecute[] = "cudnnBackendExecute";
constexpr char kAlgorithms[] = "cudnnGetConvolution...Algorithm_v7";

// Asks one of six functions, which differ in the order of descriptors and the type of answers;
// `ask` passes the descriptors, then the given arguments.
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

CallStatus InvalidGraph(const char* symbol, const char* fault) {
  return cuda_api::CallFailed(CUDNN_STATUS_BAD_PARAM,
                              absl::StrCat(symbol, ": an operation graph: ", fault));
}

cuda_api::Access AccessOf(const DnnTensorUse& use) {
  if (!use.is_written) return cuda_api::Access::kRead;
  return use.is_read ? cuda_api::Access::kReadWrite : cuda_api::Access::kWrite;
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
      command.requested > wire::kMaxDnnAlgorithms) {
    return cuda_api::InvalidArguments(CUDNN_STATUS_BAD_PARAM, kAlgorithms);
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

template <typename Ask>
CallStatus CudnnCalls::AboutGraph(const char* symbol, const DnnGraph& graph, Ask ask) {
  if (const char* const fault = DnnFault(graph)) return InvalidGraph(symbol, fault);
  const CudnnInvocation invocation(*this, symbol, graphs_.exist(), StreamSet::kLegacy);
  return invocation.ok() ? invocation.Done(ask(invocation.handle())) : invocation.refusal();
}

CallStatus CudnnCalls::CudnnGraphChoices(const wire::CudnnGraphChoices& command,
                                         wire::CudnnGraphChoicesResult& result) {
  if (command.mode >= CUDNN_HEUR_MODES_COUNT)
    return cuda_api::InvalidArguments(CUDNN_STATUS_BAD_PARAM, kFinalize);
  const auto mode = static_cast<cudnnBackendHeurMode_t>(command.mode);
  return AboutGraph(kFinalize, command.graph, [&](cudnnHandle_t handle) {
    return graphs_.Choices(handle, command.graph, mode, result.choices);
  });
}

CallStatus CudnnCalls::CudnnGraphEngine(const wire::CudnnGraphEngine& command,
                                        wire::CudnnGraphEngineResult& result) {
  return AboutGraph(kFinalize, command.graph, [&](cudnnHandle_t handle) {
    return graphs_.Describe(handle, command.graph, command.engine, result.description);
  });
}

CallStatus CudnnCalls::CudnnGraphPlan(const wire::CudnnGraphPlan& command,
                                      wire::CudnnGraphPlanResult& result) {
  if (!DnnIsValid(command.config))
    return cuda_api::InvalidArguments(CUDNN_STATUS_BAD_PARAM, kFinalize);
  return AboutGraph(kFinalize, command.graph, [&](cudnnHandle_t handle) {
    return graphs_.WorkspaceOf(handle, command.graph, command.config, result.workspace_bytes);
  });
}

CallStatus CudnnCalls::CudnnGraphExecute(const wire::CudnnGraphExecute& command) {
  const DnnGraph& graph = command.graph;
  if (const char* const fault = DnnFault(graph)) return InvalidGraph(kExecute, fault);
  if (!DnnIsValid(command.config) || command.addresses.size() != graph.tensors.size())
    return cuda_api::InvalidArguments(CUDNN_STATUS_BAD_PARAM, kExecute);
  std::vector<void*> addresses(graph.tensors.size());
  for (std::uint32_t i = 0; i < addresses.size(); ++i) {
    if (graph.tensors[i].is_virtual != 0) continue;
    addresses[i] = Resolve(command.addresses[i], DnnBytes(graph.tensors[i].shape),
                           AccessOf(DnnUseOf(graph, i)));
    if (addresses[i] == nullptr) return cuda_api::ForeignMemory(CUDNN_STATUS_BAD_PARAM, kExecute);
  }
  const cuda_api::DeviceArgument workspace(*this, command.workspace, command.workspace_bytes,
                                           cuda_api::Access::kWrite);
  if (!workspace.ok()) return cuda_api::ForeignMemory(CUDNN_STATUS_BAD_PARAM, kExecute);
  const CudnnInvocation invocation(*this, kExecute, graphs_.exist(), command.stream);
  if (!invocation.ok()) return invocation.refusal();
  return invocation.Done(graphs_.Execute(invocation.handle(), graph, command.config, addresses,
                                         workspace.as<void>(), command.workspace_bytes));
}

}  // namespace torpor::executor
