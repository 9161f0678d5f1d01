#include "client_shim/cudart/graph/graph_update.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace torpor::shim {
namespace {

using Places = std::unordered_map<const GraphNode*, std::size_t>;

Places PlacesOf(const Graph& graph) {
  Places places;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) places[graph.nodes()[i].get()] = i;
  return places;
}

bool Differ(cudaGraphExecUpdateResultInfo& info, cudaGraphExecUpdateResult result,
            const GraphNode* node, const GraphNode* from = nullptr) {
  info.result = result;
  info.errorNode = node ? node->handle() : nullptr;
  info.errorFromNode = from ? from->handle() : nullptr;
  return true;
}

class Comparison {
 public:
  Comparison(const Graph& own, const Graph& given, cudaGraphExecUpdateResultInfo& info)
      : own_(own), given_(given), own_places_(PlacesOf(own)), info_(info) {}

  // Keeps only the first difference.
  bool FindsDifference() {
    if (own_.nodes().size() != given_.nodes().size())
      return Differ(info_, cudaGraphExecUpdateErrorTopologyChanged, nullptr);
    for (std::size_t i = 0; i < own_.nodes().size(); ++i)
      if (NodesDiffer(*own_.nodes()[i], *given_.nodes()[i])) return true;
    return false;
  }

 private:
  bool NodesDiffer(const GraphNode& own, const GraphNode& given) {
    if (own.work.index() != given.work.index())
      return Differ(info_, cudaGraphExecUpdateErrorNodeTypeChanged, &given);
    if (own.dependencies.size() != given.dependencies.size())
      return Differ(info_, cudaGraphExecUpdateErrorTopologyChanged, &given);
    for (const GraphEdge& edge : given.dependencies)
      if (!HasDependency(own, edge))
        return Differ(info_, cudaGraphExecUpdateErrorTopologyChanged, &given, edge.node);
    return WorkDiffers(own, given);
  }

  bool HasDependency(const GraphNode& own, const GraphEdge& given) {
    const std::size_t place = given_places_.at(given.node);
    return std::any_of(own.dependencies.begin(), own.dependencies.end(),
                       [&](const GraphEdge& edge) { return own_places_.at(edge.node) == place; });
  }

  bool WorkDiffers(const GraphNode& own, const GraphNode& given) {
    if (const auto* child = std::get_if<ChildWork>(&own.work))
      return Comparison(*child->graph, *std::get<ChildWork>(given.work).graph, info_)
          .FindsDifference();
    const auto* memory = std::get_if<AllocationWork>(&own.work);
    const bool is_resized = memory && memory->parameters.bytesize !=
                                          std::get<AllocationWork>(given.work).parameters.bytesize;
    return is_resized && Differ(info_, cudaGraphExecUpdateErrorParametersChanged, &given);
  }

  const Graph& own_;
  const Graph& given_;
  const Places own_places_;
  const Places given_places_ = PlacesOf(given_);
  cudaGraphExecUpdateResultInfo& info_;
};

void TakeWork(Graph& own, const Graph& given, ReplacedWork& replaced) {
  for (std::size_t i = 0; i < own.nodes().size(); ++i) {
    GraphNode& node = *own.nodes()[i];
    const NodeWork& taken = given.nodes()[i]->work;
    if (auto* child = std::get_if<ChildWork>(&node.work))
      TakeWork(*child->graph, *std::get<ChildWork>(taken).graph, replaced);
    else
      replaced.emplace_back(&node, std::exchange(node.work, taken));
  }
}

}  // namespace

bool UpdateWork(Graph& own, const Graph& given, cudaGraphExecUpdateResultInfo& info,
                ReplacedWork& replaced) {
  info = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
  if (Comparison(own, given, info).FindsDifference()) return false;
  TakeWork(own, given, replaced);
  return true;
}

}  // namespace torpor::shim
