#pragma once

#include <cudnn.h>

#include <cstdint>
#include <string>
#include <vector>

#include "nvidia/cudnn/graph.h"

// Questions of the backend API's entries to the surrounding library: the replacement library asks
// the executor's cuDNN, the emulated library knows the answers. Graphs are valid; `handle` comes
// from the program and may be null or invalid. Thread-safe.
namespace torpor {

// Fills `choices` with the recommended configurations for a graph, best first.
cudnnStatus_t DnnRecommend(cudnnHandle_t handle, const DnnGraph& graph, cudnnBackendHeurMode_t mode,
                           std::vector<DnnEngineChoice>& choices);

// Describes one engine for a graph; fails if the library has no such engine.
cudnnStatus_t DnnDescribe(cudnnHandle_t handle, const DnnGraph& graph, std::int64_t engine,
                          DnnEngine& description);

// Checks that the graph can be executed with `config`, and sets the bytes of workspace.
cudnnStatus_t DnnPlan(cudnnHandle_t handle, const DnnGraph& graph, const DnnEngineConfig& config,
                      std::uint64_t& workspace_bytes);

// Prints `line`, the reason of a refused call, for the user of the program.
void DnnSay(const std::string& line);

}  // namespace torpor
