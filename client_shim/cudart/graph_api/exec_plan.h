#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "client_shim/core/client_core.h"
#include "client_shim/cudart/graph/graph.h"
#include "client_shim/cudart/graph/plan.h"
#include "proto/cuda_api/cudart_commands.h"

namespace torpor::shim {

// A graph ready for launching: the stages (plan.h), with the executor's part of each stage made an
// object of the session of the device in use. The graph must outlive the plan. Not thread-safe.
class ExecPlan {
 public:
  using Nodes = std::unordered_set<const GraphNode*>;

  // Plans the graph and creates the executor's objects. `disabled` nodes do nothing.
  // cudaErrorInvalidValue for a cycle.
  static cudaError_t Make(const Graph& graph, const Nodes& disabled,
                          std::unique_ptr<ExecPlan>& plan);
  ~ExecPlan();
  ExecPlan(const ExecPlan&) = delete;
  ExecPlan& operator=(const ExecPlan&) = delete;

  const std::vector<Stage>& stages() const { return stages_; }
  // The executor's object of a stage; 0 without executor nodes.
  std::uint64_t part(std::size_t stage) const { return parts_[stage].wire; }
  // Whether a single command to the executor makes the whole launch.
  bool is_one_command() const { return stages_.size() == 1 && stages_.front().client.empty(); }
  Runner runner_of(const GraphNode& node) const { return planned_.at(&node).runner; }
  // All planned nodes, in no particular order.
  std::vector<const GraphNode*> nodes() const;
  // Allocations and frees, in order.
  const std::vector<const GraphNode*>& memory_nodes() const { return memory_nodes_; }

  // Sends the node's present work to the executor, if changed. The node's runner must be unchanged.
  cudaError_t Tell(const GraphNode& node, const Nodes& disabled);

 private:
  struct Planned {
    Runner runner = Runner::kExecutor;
    std::size_t stage = 0;  // for executor nodes only, like `place`
    std::size_t place = 0;
  };
  // The executor's nodes of a stage, with the commands sent for each.
  struct Part {
    std::uint64_t wire = 0;  // 0 without executor nodes
    std::vector<std::vector<wire::GraphCommand>> sent;
  };

  ExecPlan();
  cudaError_t CreateParts(const Nodes& disabled);
  cudaError_t CreatePart(const Stage& stage, const Nodes& disabled, Part& part);

  ClientCore& core_;
  std::vector<Stage> stages_;
  std::unordered_map<const GraphNode*, Planned> planned_;
  std::vector<Part> parts_;  // one a stage
  std::vector<const GraphNode*> memory_nodes_;
};

}  // namespace torpor::shim
