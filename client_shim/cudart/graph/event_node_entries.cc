// The entries about nodes that record an event or wait for one.
#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/graph/graph_lock.h"
#include "client_shim/cudart/graph/make_work.h"
#include "client_shim/cudart/graph/node_access.h"

namespace torpor::shim {
namespace {

template <typename EventWork>
cudaError_t Add(cudaGraphNode_t* node, cudaGraph_t graph, const Dependencies& dependencies,
                cudaEvent_t event) {
  NodeWork work;
  TORPOR_TRY(MakeEventWork<EventWork>(event, work));
  return AddNode(node, graph, dependencies, std::move(work));
}

template <typename EventWork>
cudaError_t Tell(cudaGraphNode_t node, cudaEvent_t* event) {
  const GraphLock lock;
  EventWork* work = nullptr;
  TORPOR_TRY(FindWork(node, work));
  if (!event) return cudaErrorInvalidValue;
  *event = work->event;
  return cudaSuccess;
}

template <typename EventWork>
cudaError_t Set(cudaGraphNode_t node, cudaEvent_t event) {
  NodeWork work;
  TORPOR_TRY(MakeEventWork<EventWork>(event, work));
  return SetNode(node, std::move(work));
}

template <typename EventWork>
cudaError_t SetExec(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) {
  NodeWork work;
  TORPOR_TRY(MakeEventWork<EventWork>(event, work));
  return SetExecNode(exec, node, std::move(work));
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* dependencies, size_t count,
                                        cudaEvent_t event) {
  return Entry([&] {
    return Add<EventRecordWork>(node, graph, {dependencies, nullptr, count}, event);
  });
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* dependencies, size_t count,
                                      cudaEvent_t event) {
  return Entry([&] {
    return Add<EventWaitWork>(node, graph, {dependencies, nullptr, count}, event);
  });
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return Entry([&] { return Tell<EventRecordWork>(node, event); });
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  return Entry([&] { return Tell<EventWaitWork>(node, event); });
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return Entry([&] { return Set<EventRecordWork>(node, event); });
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return Entry([&] { return Set<EventWaitWork>(node, event); });
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event) {
  return Entry([&] { return SetExec<EventRecordWork>(exec, node, event); });
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event) {
  return Entry([&] { return SetExec<EventWaitWork>(exec, node, event); });
}
