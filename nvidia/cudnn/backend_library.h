#pragma once

#include <cudnn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "nvidia/cudnn/graph.h"

// What the entries of the backend API ask of the library that they are part of: the replacement
// library asks the executor's, the emulated one knows. Graphs are valid; `handle` is the program's
// word and may be null or nonsense. From any thread.
namespace torpor {

// The configurations that are recommended for a graph, best first.
cudnnStatus_t DnnRecommend(cudnnHandle_t handle, const DnnGraph& graph, cudnnBackendHeurMode_t mode,
                           std::vector<DnnEngineChoice>& choices);

cudnnStatus_t DnnDescribe(cudnnHandle_t handle, const DnnGraph& graph, std::int64_t engine,
                          DnnEngine& description);

// Whether the graph can be executed so, and how much workspace that takes.
cudnnStatus_t DnnPlan(cudnnHandle_t handle, const DnnGraph& graph, const DnnEngineConfig& config,
                      std::uint64_t& workspace_bytes);

// Tells whoever runs the program why a call was refused.
void DnnSay(const std::string& line);

}  // namespace torpor
