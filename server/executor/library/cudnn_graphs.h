#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nvidia/cudnn/graph.h"
#include "proto/cuda_api/cudnn_functions.h"
#include "server/executor/library/cudnn_plans.h"

namespace torpor::executor {

// Answers the calls about operation graphs, and executes graphs, with the plans of all sessions.
// Graphs and configurations must be valid, and `handle` must be a handle of the library. Not
// thread-safe.
class CudnnGraphs {
 public:
  // Both must outlive the object.
  CudnnGraphs(const cuda_api::CudnnFunctions& functions, CudnnPlans& plans)
      : functions_(functions), plans_(plans) {}

  // Whether the library has the backend API.
  bool exist() const;

  // Appends the configurations that the library recommends for the graph, best first.
  cudnnStatus_t Choices(cudnnHandle_t handle, const DnnGraph& graph, cudnnBackendHeurMode_t mode,
                        std::vector<DnnEngineChoice>& choices);
  // Fills in the library's description of the engine with index `engine`.
  cudnnStatus_t Describe(cudnnHandle_t handle, const DnnGraph& graph, std::int64_t engine,
                         DnnEngine& description);
  // Tells whether the configuration can execute the graph, and the bytes of workspace.
  cudnnStatus_t WorkspaceOf(cudnnHandle_t handle, const DnnGraph& graph,
                            const DnnEngineConfig& config, std::uint64_t& bytes);

  // Executes the graph; `addresses` are those of the graph's tensors, in order. If the library does
  // not know the configuration (for example after a move to another kind of GPU), or needs more
  // workspace than given, the first recommended configuration that fits is used; NOT_SUPPORTED or
  // the plan's error if none fits.
  cudnnStatus_t Execute(cudnnHandle_t handle, const DnnGraph& graph, const DnnEngineConfig& config,
                        std::span<void* const> addresses, void* workspace,
                        std::uint64_t workspace_bytes);

 private:
  // Returns the first recommended plan that fits into the workspace; null if no plan fits.
  std::shared_ptr<const CudnnPlan> AnyThatFits(cudnnHandle_t handle, const DnnGraph& graph,
                                               std::uint64_t workspace_bytes);

  const cuda_api::CudnnFunctions& functions_;
  CudnnPlans& plans_;
};

}  // namespace torpor::executor
