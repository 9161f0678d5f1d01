// The entries about memset nodes.
#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/graph/graph_lock.h"
#include "client_shim/cudart/graph/make_work.h"
#include "client_shim/cudart/graph/node_access.h"

namespace torpor::shim {
namespace {

cudaError_t Make(const cudaMemsetParams* parameters, NodeWork& work) {
  return parameters ? MakeFillWork(*parameters, work) : cudaErrorInvalidValue;
}

cudaError_t Tell(cudaGraphNode_t node, cudaMemsetParams* parameters) {
  const GraphLock lock;
  FillWork* work = nullptr;
  TORPOR_TRY(FindWork(node, work));
  if (!parameters) return cudaErrorInvalidValue;
  *parameters = work->parameters;
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const struct cudaMemsetParams* parameters) {
  return Entry([&]() -> cudaError_t {
    NodeWork work;
    TORPOR_TRY(Make(parameters, work));
    return AddNode(node, graph, {dependencies, nullptr, count}, std::move(work));
  });
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemsetParams* parameters) {
  return Entry([&] { return Tell(node, parameters); });
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams* parameters) {
  return Entry([&]() -> cudaError_t {
    NodeWork work;
    TORPOR_TRY(Make(parameters, work));
    return SetNode(node, std::move(work));
  });
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams* parameters) {
  return Entry([&]() -> cudaError_t {
    NodeWork work;
    TORPOR_TRY(Make(parameters, work));
    return SetExecNode(exec, node, std::move(work));
  });
}
