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

// The operation graphs of one session and the plans that execute them, made when they are first
// asked for. Of one thread at a time. Graphs and configurations are valid, `handle` is real.
class CudnnGraphs {
 public:
  // `functions` outlives this.
  explicit CudnnGraphs(const cuda_api::CudnnFunctions& functions) : functions_(functions) {}

  // Whether the library has the backend API.
  bool exist() const;
  // Destroys all if there are too many; between calls.
  void Trim();

  cudnnStatus_t Choices(cudnnHandle_t handle, const DnnGraph& graph, cudnnBackendHeurMode_t mode,
                        std::vector<DnnEngineChoice>& choices);
  cudnnStatus_t Describe(cudnnHandle_t handle, const DnnGraph& graph, std::int64_t engine,
                         DnnEngine& description);
  // Whether the graph can be executed so, and how much workspace that takes.
  cudnnStatus_t WorkspaceOf(cudnnHandle_t handle, const DnnGraph& graph,
                            const DnnEngineConfig& config, std::uint64_t& bytes);

  // Addresses of the graph's tensors in their order. A configuration that this GPU's library does
  // not know, as after a move from another kind of GPU, or that wants more workspace, gives way to
  // the best recommended one that can be.
  cudnnStatus_t Execute(cudnnHandle_t handle, const DnnGraph& graph, const DnnEngineConfig& config,
                        std::span<void* const> addresses, void* workspace,
                        std::uint64_t workspace_bytes);

 private:
  struct Plan {
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const RealPlan* real = nullptr;  // of success
  };

  const RealGraph& Real(cudnnHandle_t handle, const DnnGraph& graph);
  Plan Planned(cudnnHandle_t handle, const DnnGraph& graph, const DnnEngineConfig& config);
  // Null if there is none.
  const RealPlan* AnyThatFits(cudnnHandle_t handle, const DnnGraph& graph,
                              std::uint64_t workspace_bytes);

  const cuda_api::CudnnFunctions& functions_;
  // By their encoded values.
  absl::flat_hash_map<std::string, std::unique_ptr<RealGraph>> graphs_;
  absl::flat_hash_map<std::string, std::unique_ptr<RealPlan>> plans_;  // of the graphs
};

}  // namespace torpor::executor
