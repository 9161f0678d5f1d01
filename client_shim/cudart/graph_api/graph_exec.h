#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "client_shim/cudart/graph/graph.h"
#include "client_shim/cudart/graph_api/exec_plan.h"
#include "client_shim/cudart/stream/stream.h"

namespace torpor::shim {

// An instantiated graph: a clone of the program's and its plan. One launch at a time is under way
// in the client; changes wait for it and hold from the next one, or, where they fail, not at all.
// Thread-safe. A cudaGraphExec_t is the address of one.
class GraphExec : public std::enable_shared_from_this<GraphExec> {
 public:
  // `graph`: with no cycle, else cudaErrorInvalidValue.
  static cudaError_t Instantiate(const Graph& graph, unsigned long long flags,
                                 std::shared_ptr<GraphExec>& exec);
  GraphExec(const GraphExec&) = delete;
  GraphExec& operator=(const GraphExec&) = delete;

  // Null if the handle is no live one's.
  static std::shared_ptr<GraphExec> Find(cudaGraphExec_t handle);
  cudaGraphExec_t handle() { return reinterpret_cast<cudaGraphExec_t>(this); }
  // False: it was destroyed already. What is launched goes on.
  static bool Destroy(cudaGraphExec_t handle);
  // Those of the device in use.
  static void DestroyAll();

  // A graph of the same work as it is now.
  std::unique_ptr<Graph> CloneGraph();

  unsigned long long flags() const { return flags_; }

  // On a stream, of the device that it was instantiated for, that is ready for a command.
  cudaError_t Launch(const StreamPtr& stream);

  // `node`: of the graph that this was instantiated from; the new work is of the node's kind.
  cudaError_t SetWork(cudaGraphNode_t node, NodeWork work);
  // Only kernels, copies and fills can be left out.
  cudaError_t SetEnabled(cudaGraphNode_t node, bool enabled);
  cudaError_t IsEnabled(cudaGraphNode_t node, bool& enabled);
  // Takes the work of all nodes of a graph of the same structure.
  cudaError_t Update(const Graph& graph, cudaGraphExecUpdateResultInfo& info);

 private:
  // What runs next in a launch.
  struct Position {
    std::size_t stage = 0;
    std::size_t client_node = 0;
  };
  GraphExec(const Graph& graph, unsigned long long flags);

  void IndexOriginals(const Graph& graph);
  GraphNode* FindOwn(cudaGraphNode_t node);
  // Turns to the graph's device too.
  std::unique_lock<std::mutex> AwaitIdle();

  // Makes the plan anew; the old one stays if that fails.
  cudaError_t Rebuild();
  // Tells the executor what the node does now, unless it knows.
  cudaError_t Tell(const GraphNode& node);
  cudaError_t TellAll();
  // Gives `own`, a part of the graph, the work of `given`.
  cudaError_t TakeWork(Graph& own, const Graph& given, cudaGraphExecUpdateResultInfo& info);

  cudaError_t BeginMemory();
  // Orders the launch behind earlier ones, as far as the executor does not.
  cudaError_t FollowLastLaunch(const Stream& stream);
  // `is_done`: everything was sent; else the rest comes with Resume.
  cudaError_t Continue(const StreamPtr& stream, Position position, bool has_arrived, bool& is_done);
  void Resume(const StreamPtr& stream, Position position, cudaError_t state);

  ClientCore& core_;  // of the device that was current at its making
  const unsigned long long flags_;
  std::unique_ptr<Graph> graph_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable became_idle_;
  bool is_launching_ = false;                        // host functions are to come
  std::optional<std::uint64_t> last_stream_;         // of the latest launch, as commands name it
  std::unordered_map<const void*, GraphNode*> own_;  // by the given graph's node
  ExecPlan::Nodes disabled_;
  std::unique_ptr<ExecPlan> plan_;
};

}  // namespace torpor::shim
