#pragma once

#include <utility>

#include "proto/cuda_api/cudart_dispatch.h"
#include "server/executor/gpu/device.h"
#include "server/executor/runtime/graph_set.h"
#include "server/executor/runtime/stream_set.h"

namespace torpor::executor {

// Carries out the commands about graphs of a session, and owns the graphs. Not thread-safe; call
// with the device current.
class GraphCalls final : public cuda_api::CudartGraphHandler {
 public:
  // As for GraphSet. `run` carries out a command of a graph.
  GraphCalls(const Device& device, StreamSet& streams, DeviceImage& image, GraphSet::RunCommand run)
      : graphs_(device, streams, image, std::move(run)) {}

  GraphSet& graphs() { return graphs_; }

  cuda_api::CallStatus GraphCreate(const wire::GraphCreate& command) override;
  cuda_api::CallStatus GraphAddNodes(const wire::GraphAddNodes& command) override;
  cuda_api::CallStatus GraphSetNode(const wire::GraphSetNode& command) override;
  cuda_api::CallStatus GraphDestroy(const wire::GraphDestroy& command) override;
  cuda_api::CallStatus GraphLaunch(const wire::GraphLaunch& command) override;

 private:
  GraphSet graphs_;
};

}  // namespace torpor::executor
