#include "server/executor/runtime/driver_graph.h"

namespace torpor::executor {

// Relaxed: other sessions' threads, and this one, may allocate and load modules meanwhile.
bool DriverGraph::Capture(CUstream stream, const std::function<bool()>& enqueue) {
  const CudaDriver& driver = device_.driver();
  if (driver.StreamBeginCapture == nullptr) return false;
  if (driver.StreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS) {
    return false;
  }
  const bool enqueued = enqueue();
  CUgraph graph = nullptr;
  const bool ended = driver.StreamEndCapture(stream, &graph) == CUDA_SUCCESS && graph != nullptr;
  const bool made = enqueued && ended && Instantiate(graph);
  if (graph != nullptr) driver.GraphDestroy(graph);
  if (!made) Drop();
  return made;
}

// An update costs a fraction of a new instance.
bool DriverGraph::Instantiate(CUgraph graph) {
  const CudaDriver& driver = device_.driver();
  CUgraphExecUpdateResultInfo info{};
  if (exec_ != nullptr && driver.GraphExecUpdate(exec_, graph, &info) == CUDA_SUCCESS) return true;
  Drop();
  return device_.MakingRoom([&] { return driver.GraphInstantiate(&exec_, graph, 0); }) ==
         CUDA_SUCCESS;
}

void DriverGraph::Drop() {
  if (exec_ != nullptr) device_.discarded().Add(exec_);
  exec_ = nullptr;
}

}  // namespace torpor::executor
