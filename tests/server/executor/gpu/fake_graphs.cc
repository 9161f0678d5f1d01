// Captured work, and graphs of captured work.
#include <utility>

#include "base/check.h"
#include "tests/server/executor/gpu/fake_driver_calls.h"

namespace torpor::executor {

struct FakeDriverCalls::Graphs {
  // Work goes to the capture, whatever the stream, except for records of events and waits.
  static CUresult BeginCapture(CUstream, CUstreamCaptureMode) {
    TORPOR_CHECK(!fake->capture_);
    return fake->capture_.emplace(), Ok();
  }
  static CUresult EndCapture(CUstream, CUgraph* graph) {
    fake->graphs_.push_back(std::move(*fake->capture_));
    fake->capture_.reset();
    if (fake->refuse_captures_) return *graph = nullptr, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return *graph = reinterpret_cast<CUgraph>(fake->graphs_.size()), Ok();
  }
  static CUresult Instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
    ++fake->live_graph_execs_;
    return *exec = reinterpret_cast<CUgraphExec>(graph), Ok();
  }
  static CUresult Update(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*) {
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  static CUresult LaunchGraph(CUgraphExec exec, CUstream stream) {
    for (const FakeCuda::Work& work : fake->graphs_[reinterpret_cast<std::size_t>(exec) - 1]) {
      fake->Enqueue(stream, work);
    }
    return ++fake->graphs_launched_, Ok();
  }
  static CUresult DestroyExec(CUgraphExec) { return --fake->live_graph_execs_, Ok(); }
  static CUresult DestroyGraph(CUgraph) { return Ok(); }
};

void FakeDriverCalls::AddGraphs(CudaDriver& driver) {
  driver.StreamBeginCapture = Graphs::BeginCapture;
  driver.StreamEndCapture = Graphs::EndCapture;
  driver.GraphInstantiate = Graphs::Instantiate;
  driver.GraphExecUpdate = Graphs::Update;
  driver.GraphLaunch = Graphs::LaunchGraph;
  driver.GraphExecDestroy = Graphs::DestroyExec;
  driver.GraphDestroy = Graphs::DestroyGraph;
}

}  // namespace torpor::executor
