#include "client_shim/cudart/graph_api/exec_plan.h"

#include <algorithm>
#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph_api/work_commands.h"

namespace torpor::shim {
namespace {

// The bytes of a GraphAddNodes before the last node, and of a node: together below the limit of a
// command's length.
constexpr std::size_t kMaxPieceBytes = std::size_t{256} * 1024;
constexpr std::size_t kMaxNodeBytes = std::size_t{512} * 1024;

// Whether two lists have the same commands with the same bytes.
bool Equal(const std::vector<wire::GraphCommand>& left,
           const std::vector<wire::GraphCommand>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const wire::GraphCommand& one, const wire::GraphCommand& other) {
                      return one.call_id == other.call_id && one.fields == other.fields;
                    });
}

std::size_t BytesOf(const std::vector<wire::GraphCommand>& commands) {
  std::size_t bytes = 0;
  for (const wire::GraphCommand& command : commands) bytes += command.fields.size();
  return bytes;
}

// Encodes a node's commands; none for a disabled node.
cudaError_t CommandsOf(const GraphNode& node, const ExecPlan::Nodes& disabled,
                       std::vector<wire::GraphCommand>& commands) {
  commands.clear();
  if (disabled.contains(&node)) return cudaSuccess;
  TORPOR_TRY(EncodeWork(node.work, commands));
  return BytesOf(commands) <= kMaxNodeBytes ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t ExecPlan::Make(const Graph& graph, const Nodes& disabled,
                           std::unique_ptr<ExecPlan>& plan) {
  std::unique_ptr<ExecPlan> made(new ExecPlan());
  const auto runner_of = [&](const GraphNode& node) {
    return made->planned_[&node].runner = RunnerOf(node.work);
  };
  if (!MakePlan(graph, runner_of, made->stages_)) return cudaErrorInvalidValue;
  TORPOR_TRY(made->CreateParts(disabled));
  plan = std::move(made);
  return cudaSuccess;
}

ExecPlan::ExecPlan() : core_(Core()) {}

ExecPlan::~ExecPlan() {
  for (const Part& part : parts_)
    if (part.wire != 0) (void)core_.Destroy(part.wire, Encode(wire::GraphDestroy{part.wire}));
}

std::vector<const GraphNode*> ExecPlan::nodes() const {
  std::vector<const GraphNode*> nodes;
  for (const auto& [node, planned] : planned_) nodes.push_back(node);
  return nodes;
}

cudaError_t ExecPlan::CreateParts(const Nodes& disabled) {
  parts_.resize(stages_.size());
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const std::vector<PlannedNode>& nodes = stages_[i].executor;
    for (std::size_t place = 0; place < nodes.size(); ++place) {
      planned_[nodes[place].node] = {Runner::kExecutor, i, place};
      const cudaGraphNodeType type = TypeOf(nodes[place].node->work);
      if (type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree)
        memory_nodes_.push_back(nodes[place].node);
    }
    TORPOR_TRY(CreatePart(stages_[i], disabled, parts_[i]));
  }
  return cudaSuccess;
}

cudaError_t ExecPlan::CreatePart(const Stage& stage, const Nodes& disabled, Part& part) {
  if (stage.executor.empty()) return cudaSuccess;
  const std::uint64_t graph = Core().MintHandle(HandleKind::kGraph);
  TORPOR_TRY(Core().Create(graph, Encode(wire::GraphCreate{graph})));
  part.wire = graph;
  wire::GraphAddNodes piece{graph, 0, {}};
  std::size_t piece_bytes = 0;
  const auto send = [&] { return Core().Configure(graph, Encode(piece), piece.first); };
  for (const PlannedNode& planned : stage.executor) {
    wire::GraphNode& node = piece.nodes.emplace_back();
    TORPOR_TRY(CommandsOf(*planned.node, disabled, node.commands));
    node.dependencies = planned.dependencies;
    part.sent.push_back(node.commands);
    piece_bytes += BytesOf(node.commands) + sizeof(std::uint32_t) * node.dependencies.size();
    if (piece_bytes < kMaxPieceBytes) continue;
    TORPOR_TRY(send());
    piece = {graph, static_cast<std::uint32_t>(part.sent.size()), {}};
    piece_bytes = 0;
  }
  return piece.nodes.empty() ? cudaSuccess : send();
}

cudaError_t ExecPlan::Tell(const GraphNode& node, const Nodes& disabled) {
  const Planned planned = planned_.at(&node);
  if (planned.runner != Runner::kExecutor) return cudaSuccess;
  std::vector<wire::GraphCommand> commands;
  TORPOR_TRY(CommandsOf(node, disabled, commands));
  Part& part = parts_[planned.stage];
  if (Equal(commands, part.sent[planned.place])) return cudaSuccess;
  const wire::GraphSetNode change{part.wire, static_cast<std::uint32_t>(planned.place), commands};
  TORPOR_TRY(Core().Configure(part.wire, Encode(change), planned.place));
  part.sent[planned.place] = std::move(commands);
  return cudaSuccess;
}

}  // namespace torpor::shim
