// The entries about memset nodes.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph_api/make_work.h"
#include "client_shim/cudart/graph_api/node_access.h"

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

// Checks the range now; see MakeFillWork.
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, size_t count,
                                   const struct cudaMemsetParams* parameters) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count}, MakeFrom(parameters, MakeFillWork));
  });
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemsetParams* parameters) {
  return Entry([&] { return TellWork(node, &FillWork::parameters, parameters); });
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams* parameters) {
  return Entry([&] { return SetMade(node, MakeFrom(parameters, MakeFillWork)); });
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams* parameters) {
  return Entry([&] { return SetExecMade(exec, node, MakeFrom(parameters, MakeFillWork)); });
}
