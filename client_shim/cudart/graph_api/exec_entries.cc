// The entries about instantiated graphs: instantiation, launch, update, switching nodes on and off.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph_lock.h"
#include "client_shim/cudart/graph_api/graph_exec.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// Refuses launches from the device; the other known flags need no action here.
cudaError_t Instantiate(cudaGraphExec_t* out, cudaGraph_t handle, unsigned long long flags) {
  constexpr unsigned long long kKnown =
      cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
      cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUseNodePriority;
  if (!out || (flags & ~kKnown) != 0) return cudaErrorInvalidValue;
  if ((flags & cudaGraphInstantiateFlagDeviceLaunch) != 0) {
    Core().WarnOnce("device launch", "launching graphs from kernels is not supported");
    return cudaErrorNotSupported;
  }
  TORPOR_TRY(Begin());
  const GraphLock lock;
  const Graph* const graph = Graph::Find(handle);
  if (!graph) return cudaErrorInvalidValue;
  std::shared_ptr<GraphExec> exec;
  TORPOR_TRY(GraphExec::Instantiate(*graph, flags, exec));
  *out = exec->handle();
  return cudaSuccess;
}

// Reports a failure in the parameters too, but names no node.
cudaError_t InstantiateWith(cudaGraphExec_t* exec, cudaGraph_t graph,
                            cudaGraphInstantiateParams* parameters) {
  if (!parameters) return cudaErrorInvalidValue;
  const cudaError_t error = Instantiate(exec, graph, parameters->flags);
  parameters->errNode_out = nullptr;
  parameters->result_out = error == cudaSuccess             ? cudaGraphInstantiateSuccess
                           : error == cudaErrorInvalidValue ? cudaGraphInstantiateInvalidStructure
                                                            : cudaGraphInstantiateError;
  return error;
}

// Breaks a capture of the stream: no graph holds launches of instantiated graphs.
cudaError_t LaunchGraph(cudaGraphExec_t handle, cudaStream_t stream_handle) {
  ClientStreamPtr stream;
  TORPOR_TRY(UseStream(stream_handle, stream));
  const std::shared_ptr<GraphExec> exec = GraphExec::Find(handle);
  return exec ? exec->Launch(stream) : cudaErrorInvalidValue;
}

// cudaGraphExecUpdate. Holds GraphLock while waiting for a running launch.
cudaError_t Update(cudaGraphExec_t handle, cudaGraph_t graph_handle,
                   cudaGraphExecUpdateResultInfo* info) {
  const std::shared_ptr<GraphExec> exec = GraphExec::Find(handle);
  const GraphLock lock;
  const Graph* const graph = Graph::Find(graph_handle);
  if (!exec || !graph) return cudaErrorInvalidValue;
  cudaGraphExecUpdateResultInfo ignored{};
  return exec->Update(*graph, info ? *info : ignored);
}

cudaError_t TellEnabled(cudaGraphExec_t handle, cudaGraphNode_t node, unsigned* is_enabled) {
  const std::shared_ptr<GraphExec> exec = GraphExec::Find(handle);
  if (!exec || !is_enabled) return cudaErrorInvalidValue;
  bool enabled = false;
  TORPOR_TRY(exec->IsEnabled(node, enabled));
  *is_enabled = enabled ? 1 : 0;
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                 unsigned long long flags) {
  return Entry([&] { return Instantiate(exec, graph, flags); });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                          unsigned long long flags) {
  return Entry([&] { return Instantiate(exec, graph, flags); });
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
  return Entry([&] { return InstantiateWith(exec, graph, parameters); });
}

// The stream is meant for the upload, already done by instantiation.
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                cudaGraphInstantiateParams* parameters) {
  return Entry([&] { return InstantiateWith(exec, graph, parameters); });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return Entry([&] { return LaunchGraph(exec, stream); });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return Entry([&]() -> cudaError_t {
    ClientStreamPtr ignored;
    TORPOR_TRY(UseStream(stream, ignored));
    return GraphExec::Find(exec) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info) {
  return Entry([&] { return Update(exec, graph, info); });
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t handle, cudaGraphNode_t node,
                                    unsigned int is_enabled) {
  return Entry([&] {
    const std::shared_ptr<GraphExec> exec = GraphExec::Find(handle);
    return exec ? exec->SetEnabled(node, is_enabled != 0) : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int* is_enabled) {
  return Entry([&] { return TellEnabled(exec, node, is_enabled); });
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t handle, unsigned long long* flags) {
  return Entry([&] {
    const std::shared_ptr<GraphExec> exec = GraphExec::Find(handle);
    if (!exec || !flags) return cudaErrorInvalidValue;
    *flags = exec->flags();
    return cudaSuccess;
  });
}

// Running launches go on and keep the GraphExec alive.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return Entry([&] { return GraphExec::Destroy(exec) ? cudaSuccess : cudaErrorInvalidValue; });
}
