// Graphs that come of capturing streams. Nodes of a graph have no handles.
#include <memory>

#include "emulator/driver/api/api.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

extern "C" {

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                             unsigned long long flags) {
  return InContext([&](Context&) {
    const CapturedGraph* found = Driver::Get().graphs().Get(graph);
    if (exec == nullptr || found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (flags != 0) return CUDA_ERROR_NOT_SUPPORTED;
    *exec = Driver::Get().graph_execs().Create(std::make_shared<CapturedGraph>(*found));
    return CUDA_SUCCESS;
  });
}

// Graphs are alike if as many pieces of work make them up.
CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec exec, CUgraph graph,
                                   CUgraphExecUpdateResultInfo* info) {
  return InContext([&](Context&) {
    const CapturedGraph* from = Driver::Get().graphs().Get(graph);
    CapturedGraph* to = Driver::Get().graph_execs().Get(exec);
    if (from == nullptr || to == nullptr || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const bool alike = from->work->size() == to->work->size();
    *info = {};
    info->result =
        alike ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (!alike) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    to->work = from->work;
    return CUDA_SUCCESS;
  });
}

// Launches under way go on.
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
  return Call([&](Driver& driver) {
    return driver.graph_execs().Destroy(exec) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
  return Call([&](Driver& driver) {
    return driver.graphs().Destroy(graph) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

}  // extern "C"
