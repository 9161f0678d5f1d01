// The entries about nodes for event records and waits.
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph_api/make_work.h"
#include "client_shim/cudart/graph_api/node_access.h"

namespace torpor::shim {
namespace {

template <typename EventWork>
auto Make(cudaEvent_t event) {
  return [event](NodeWork& work) { return MakeEventWork<EventWork>(event, work); };
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

// Events shared among processes are refused.
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* dependencies, size_t count,
                                        cudaEvent_t event) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count}, Make<EventRecordWork>(event));
  });
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* dependencies, size_t count,
                                      cudaEvent_t event) {
  return Entry([&] {
    return AddMade(node, graph, {dependencies, nullptr, count}, Make<EventWaitWork>(event));
  });
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return Entry([&] { return TellWork(node, &EventRecordWork::event, event); });
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return Entry([&] { return TellWork(node, &EventWaitWork::event, event); });
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return Entry([&] { return SetMade(node, Make<EventRecordWork>(event)); });
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return Entry([&] { return SetMade(node, Make<EventWaitWork>(event)); });
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
  return Entry([&] { return SetExecMade(exec, node, Make<EventRecordWork>(event)); });
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event) {
  return Entry([&] { return SetExecMade(exec, node, Make<EventWaitWork>(event)); });
}
