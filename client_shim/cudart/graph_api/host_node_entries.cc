// The entries about host function nodes.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph_api/make_work.h"
#include "client_shim/cudart/graph_api/node_access.h"

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

// The function runs on the shim's thread of host functions at each launch.
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, size_t count,
                                 const struct cudaHostNodeParams* parameters) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count}, MakeFrom(parameters, MakeHostWork));
  });
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node,
                                       struct cudaHostNodeParams* parameters) {
  return Entry([&] { return TellWork(node, &HostWork::parameters, parameters); });
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams* parameters) {
  return Entry([&] { return SetMade(node, MakeFrom(parameters, MakeHostWork)); });
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams* parameters) {
  return Entry([&] { return SetExecMade(exec, node, MakeFrom(parameters, MakeHostWork)); });
}
