// The entries about host function nodes.
#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/graph/graph_lock.h"
#include "client_shim/cudart/graph/make_work.h"
#include "client_shim/cudart/graph/node_access.h"

namespace torpor::shim {
namespace {

cudaError_t Make(const cudaHostNodeParams* parameters, NodeWork& work) {
  return parameters ? MakeHostWork(*parameters, work) : cudaErrorInvalidValue;
}

cudaError_t Tell(cudaGraphNode_t node, cudaHostNodeParams* parameters) {
  const GraphLock lock;
  HostWork* work = nullptr;
  TORPOR_TRY(FindWork(node, work));
  if (!parameters) return cudaErrorInvalidValue;
  *parameters = {work->function, work->data};
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 const struct cudaHostNodeParams* parameters) {
  return Entry([&]() -> cudaError_t {
    NodeWork work;
    TORPOR_TRY(Make(parameters, work));
    return AddNode(node, graph, {dependencies, nullptr, count}, std::move(work));
  });
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node,
                                       struct cudaHostNodeParams* parameters) {
  return Entry([&] { return Tell(node, parameters); });
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams* parameters) {
  return Entry([&]() -> cudaError_t {
    NodeWork work;
    TORPOR_TRY(Make(parameters, work));
    return SetNode(node, std::move(work));
  });
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams* parameters) {
  return Entry([&]() -> cudaError_t {
    NodeWork work;
    TORPOR_TRY(Make(parameters, work));
    return SetExecNode(exec, node, std::move(work));
  });
}
