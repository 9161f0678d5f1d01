#include "server/executor/runtime/graph_calls.h"

#include "server/executor/gpu/call_status.h"

namespace torpor::executor {

using cuda_api::CallStatus;

CallStatus GraphCalls::GraphCreate(const wire::GraphCreate& command) {
  return ToCallStatus(graphs_.Create(command.graph), "making a graph");
}

CallStatus GraphCalls::GraphAddNodes(const wire::GraphAddNodes& command) {
  return ToCallStatus(graphs_.AddNodes(command), "nodes of a graph");
}

CallStatus GraphCalls::GraphSetNode(const wire::GraphSetNode& command) {
  return ToCallStatus(graphs_.SetNode(command), "changing a graph");
}

CallStatus GraphCalls::GraphDestroy(const wire::GraphDestroy& command) {
  return ToCallStatus(graphs_.Destroy(command.graph), "destroying a graph");
}

CallStatus GraphCalls::GraphLaunch(const wire::GraphLaunch& command) {
  return graphs_.Launch(command.graph, command.stream);
}

}  // namespace torpor::executor
