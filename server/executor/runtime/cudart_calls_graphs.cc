// Graphs.
#include "server/executor/gpu/call_status.h"
#include "server/executor/runtime/cudart_calls.h"

namespace torpor::executor {

using cuda_api::CallStatus;

CallStatus CudartCalls::GraphCreate(const wire::GraphCreate& command) {
  return ToCallStatus(graphs_.Create(command.graph), "making a graph");
}

CallStatus CudartCalls::GraphAddNodes(const wire::GraphAddNodes& command) {
  return ToCallStatus(graphs_.AddNodes(command), "nodes of a graph");
}

CallStatus CudartCalls::GraphSetNode(const wire::GraphSetNode& command) {
  return ToCallStatus(graphs_.SetNode(command), "changing a graph");
}

CallStatus CudartCalls::GraphDestroy(const wire::GraphDestroy& command) {
  return ToCallStatus(graphs_.Destroy(command.graph), "destroying a graph");
}

CallStatus CudartCalls::GraphLaunch(const wire::GraphLaunch& command) {
  return graphs_.Launch(command.graph, command.stream);
}

}  // namespace torpor::executor
