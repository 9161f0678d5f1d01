#pragma once

#include <memory>
#include <optional>

#include "nvidia/cudnn/graph.h"
#include "proto/cuda_api/cudnn_functions.h"
#include "server/executor/library/cudnn_backend.h"
#include "server/executor/library/shared_cache.h"

namespace torpor::executor {

// A plan for executing an operation graph, and the graph.
struct CudnnPlan {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;  // why there is no plan
  std::shared_ptr<const RealGraph> graph;
  std::optional<RealPlan> real;  // on success
};

// The operation graphs and plans of all sessions on a GPU, made at first use: a plan takes the
// library up to seconds. Graphs and configurations must be valid, and handles the library's, of
// this GPU. Thread-safe.
class CudnnPlans {
 public:
  // `functions` must outlive the object.
  explicit CudnnPlans(const cuda_api::CudnnFunctions& functions);

  // Never null. A graph or plan that the library refuses has the library's status.
  std::shared_ptr<const RealGraph> Graph(cudnnHandle_t handle, const DnnGraph& graph);
  std::shared_ptr<const CudnnPlan> Plan(cudnnHandle_t handle, const DnnGraph& graph,
                                        const DnnEngineConfig& config);

 private:
  const cuda_api::CudnnFunctions& functions_;
  SharedCache<RealGraph> graphs_;
  SharedCache<CudnnPlan> plans_;
};

}  // namespace torpor::executor
