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

// An instantiated graph: a clone of the program's graph, and a plan. A cudaGraphExec_t is the
// address of a GraphExec. The client runs one launch at a time; changes wait for a running launch
// and hold from the next launch on. A failed change has no effect. Thread-safe.
class GraphExec : public std::enable_shared_from_this<GraphExec> {
 public:
  // Instantiates a graph for the device in use. cudaErrorInvalidValue for a cycle.
  static cudaError_t Instantiate(const Graph& graph, unsigned long long flags,
                                 std::shared_ptr<GraphExec>& exec);
  GraphExec(const GraphExec&) = delete;
  GraphExec& operator=(const GraphExec&) = delete;

  // Returns null if no live GraphExec has the handle.
  static std::shared_ptr<GraphExec> Find(cudaGraphExec_t handle);
  cudaGraphExec_t handle() { return reinterpret_cast<cudaGraphExec_t>(this); }
  // Drops the program's reference; running launches go on. Returns false if destroyed before.
  static bool Destroy(cudaGraphExec_t handle);
  // Those of the device in use.
  static void DestroyAll();

  unsigned long long flags() const { return flags_; }

  // Launches on a stream ready for a command, of the device of the instantiation.
  cudaError_t Launch(const ClientStreamPtr& stream);

  // Replaces a node's work. `node`: of the graph of the instantiation. The kind must be the same.
  cudaError_t SetWork(cudaGraphNode_t node, NodeWork work);
  // Switches a node on or off. Only kernels, copies and fills can be off.
  cudaError_t SetEnabled(cudaGraphNode_t node, bool enabled);
  cudaError_t IsEnabled(cudaGraphNode_t node, bool& enabled);
  // Takes over the work of all nodes of a graph with the same structure; `info` names a difference.
  cudaError_t Update(const Graph& graph, cudaGraphExecUpdateResultInfo& info);

 private:
  // The next node of a launch.
  struct Position {
    std::size_t stage = 0;
    std::size_t client_node = 0;
  };
  GraphExec(const Graph& graph, unsigned long long flags);

  void IndexOriginals(const Graph& graph);
  GraphNode* FindOwn(cudaGraphNode_t node);
  // Waits for a running launch, locks, and turns to the graph's device.
  std::unique_lock<std::mutex> AwaitIdle();

  // Makes a new plan; keeps the old plan on failure.
  cudaError_t Rebuild();
  // Sends the node's present work to the executor, if changed.
  cudaError_t Tell(const GraphNode& node);
  cudaError_t TellAll();
  // Gives `own`, a part of the graph, the work of `given`.
  cudaError_t TakeWork(Graph& own, const Graph& given, cudaGraphExecUpdateResultInfo& info);

  cudaError_t BeginMemory();
  // Orders the launch behind earlier launches in other streams, a duty of the client.
  cudaError_t FollowLastLaunch(const ClientStream& stream);
  // Runs a launch from `position` on. Sets `is_done` if everything was sent; otherwise Resume sends
  // the rest.
  cudaError_t Continue(const ClientStreamPtr& stream, Position position, bool has_arrived,
                       bool& is_done);
  void Resume(const ClientStreamPtr& stream, Position position, cudaError_t state);

  ClientCore& core_;  // of the device in use at instantiation
  const unsigned long long flags_;
  std::unique_ptr<Graph> graph_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable became_idle_;
  bool is_launching_ = false;                        // host functions are still to run
  std::optional<std::uint64_t> last_stream_;         // wire name of the latest launch's stream
  std::unordered_map<const void*, GraphNode*> own_;  // by the given graph's node
  ExecPlan::Nodes disabled_;
  std::unique_ptr<ExecPlan> plan_;
};

}  // namespace torpor::shim
