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

// Caches the operation graphs of one session and the plans for executing the graphs, both made at
// first use. Graphs and configurations must be valid, and `handle` must be a handle of the library.
// Not thread-safe.
class CudnnGraphs {
 public:
  // `functions` must outlive the object.
  explicit CudnnGraphs(const cuda_api::CudnnFunctions& functions) : functions_(functions) {}

  // Whether the library has the backend API.
  bool exist() const;
  // Destroys all graphs and plans if there are too many; call between calls of cuDNN.
  void Trim();

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
  struct Plan {
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    const RealPlan* real = nullptr;  // on success
  };

  // Return the cached graph or plan, made at first use.
  const RealGraph& Real(cudnnHandle_t handle, const DnnGraph& graph);
  Plan Planned(cudnnHandle_t handle, const DnnGraph& graph, const DnnEngineConfig& config);
  // Returns the first recommended plan that fits into the workspace; null if no plan fits.
  const RealPlan* AnyThatFits(cudnnHandle_t handle, const DnnGraph& graph,
                              std::uint64_t workspace_bytes);

  const cuda_api::CudnnFunctions& functions_;
  // Keys are the encoded values.
  absl::flat_hash_map<std::string, std::unique_ptr<RealGraph>> graphs_;
  absl::flat_hash_map<std::string, std::unique_ptr<RealPlan>> plans_;  // of the graphs
};

}  // namespace torpor::executor
