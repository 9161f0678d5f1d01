#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nvidia/cudnn/graph.h"
#include "proto/cuda_api/cudnn_functions.h"
#include "server/executor/library/cudnn_backend.h"

namespace torpor::executor {

// The operation graphs of one session and the plans that execute graphs, made at first use. Not
// thread-safe. Graphs and configurations must be valid, and `handle` must be real.
class CudnnGraphs {
 public:
  // `functions` must outlive this.
  explicit CudnnGraphs(const cuda_api::CudnnFunctions& functions) : functions_(functions) {}

  // Whether the library has the backend API.
  bool exist() const;
  // Destroys all graphs and plans if there are too many; call between calls of cuDNN.
  void Trim();

  cudnnStatus_t Choices(cudnnHandle_t handle, const DnnGraph& graph, cudnnBackendHeurMode_t mode,
                        std::vector<DnnEngineChoice>& choices);
  cudnnStatus_t Describe(cudnnHandle_t handle, const DnnGraph& graph, std::int64_t engine,
                         DnnEngine& description);
  // Tells whether the configuration can execute the graph, and the bytes of workspace.
  cudnnStatus_t WorkspaceOf(cudnnHandle_t handle, const DnnGraph& graph,
                            const DnnEngineConfig& config, std::uint64_t& bytes);

  // Executes the graph; `addresses` are of the graph's tensors, in order. If this GPU's library
  // does not know the configuration (after a move from another kind of GPU, for example) or needs
  // more workspace, the best possible recommended configuration is used.
  cudnnStatus_t Execute(cudnnHandle_t handle, const DnnGraph& graph, const DnnEngineConfig& config,
                        std::span<void* const> addresses, void* workspace,
                        std::uint64_t workspace_bytes);

 private:
  struct Plan {
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const RealPlan* real = nullptr;  // on success
  };

  const RealGraph& Real(cudnnHandle_t handle, const DnnGraph& graph);
  Plan Planned(cudnnHandle_t handle, const DnnGraph& graph, const DnnEngineConfig& config);
  // Returns null if there is no such plan.
  const RealPlan* AnyThatFits(cudnnHandle_t handle, const DnnGraph& graph,
                              std::uint64_t workspace_bytes);

  const cuda_api::CudnnFunctions& functions_;
  // By their encoded values.
  absl::flat_hash_map<std::string, std::unique_ptr<RealGraph>> graphs_;
  absl::flat_hash_map<std::string, std::unique_ptr<RealPlan>> plans_;  // of the graphs
};

}  // namespace torpor::executor
