#include "client_shim/cudart/graph/plan.h"

#include <algorithm>
#include <unordered_map>

namespace torpor::shim {
namespace {

// Places nodes in topological order, each in the earliest stage allowed by its dependencies.
class Planner {
 public:
  Planner(const std::function<Runner(const GraphNode&)>& runner_of, std::vector<Stage>& stages)
      : runner_of_(runner_of), stages_(stages) {}

  // Indices into placed_.
  using Ends = std::vector<std::size_t>;

  // Plans the nodes of `graph` behind `begin`. Work behind the graph must wait for `ends`.
  bool PlanGraph(const Graph& graph, const Ends& begin, Ends& ends) {
    std::vector<const GraphNode*> order;
    if (!graph.TopologicalOrder(order)) return false;
    if (order.empty()) ends = begin;
    std::unordered_map<const GraphNode*, Ends> ends_of;
    for (const GraphNode* node : order) {
      Ends before = node->dependencies.empty() ? begin : Ends{};
      for (const GraphEdge& edge : node->dependencies) Join(before, ends_of[edge.node]);
      if (!PlanNode(*node, before, ends_of[node])) return false;
      if (node->dependents.empty()) Join(ends, ends_of[node]);
    }
    return true;
  }

 private:
  struct Placed {
    bool on_executor = false;
    std::size_t stage = 0;
    std::uint32_t place = 0;  // on the executor
  };

  static void Join(Ends& all, const Ends& more) {
    all.insert(all.end(), more.begin(), more.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  }

  bool PlanNode(const GraphNode& node, const Ends& before, Ends& ends) {
    if (const auto* child = std::get_if<ChildWork>(&node.work))
      return PlanGraph(*child->graph, before, ends);
    const Runner runner = runner_of_(node);
    ends = {placed_.size()};
    placed_.push_back(runner == Runner::kExecutor ? PlaceOnExecutor(node, before)
                                                  : PlaceInClient(node, runner, before));
    return true;
  }

  Placed PlaceOnExecutor(const GraphNode& node, const Ends& before) {
    std::size_t stage = 0;
    for (const std::size_t i : before) stage = std::max(stage, placed_[i].stage);
    PlannedNode planned{&node, {}};
    for (const std::size_t i : before)
      if (placed_[i].on_executor && placed_[i].stage == stage)
        planned.dependencies.push_back(placed_[i].place);
    std::vector<PlannedNode>& nodes = StageAt(stage).executor;
    nodes.push_back(std::move(planned));
    return {true, stage, static_cast<std::uint32_t>(nodes.size() - 1)};
  }

  Placed PlaceInClient(const GraphNode& node, Runner runner, const Ends& before) {
    // Executor work without dependencies begins before a function of the program runs.
    std::size_t stage = runner == Runner::kClientAwaiting ? 1 : 0;
    for (const std::size_t i : before)
      stage = std::max(stage, placed_[i].stage + (placed_[i].on_executor ? 1 : 0));
    StageAt(stage).client.push_back(&node);
    return {false, stage, 0};
  }

  Stage& StageAt(std::size_t stage) {
    if (stages_.size() <= stage) stages_.resize(stage + 1);
    return stages_[stage];
  }

  const std::function<Runner(const GraphNode&)>& runner_of_;
  std::vector<Stage>& stages_;
  std::vector<Placed> placed_;
};

}  // namespace

bool MakePlan(const Graph& graph, const std::function<Runner(const GraphNode&)>& runner_of,
              std::vector<Stage>& stages) {
  stages.clear();
  Planner::Ends ends;
  return Planner(runner_of, stages).PlanGraph(graph, {}, ends);
}

}  // namespace torpor::shim
