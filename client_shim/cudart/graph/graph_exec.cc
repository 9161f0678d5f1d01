#include "client_shim/cudart/graph/graph_exec.h"

#include <algorithm>
#include <map>
#include <utility>

#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/graph/graph_memory.h"
#include "client_shim/cudart/graph/graph_update.h"
#include "client_shim/cudart/graph/work_commands.h"
#include "client_shim/cudart/host_functions.h"
#include "client_shim/cudart/managed_variables.h"

namespace torpor::shim {
namespace {

// Of one GraphAddNodes before its last node, and of a node: together below the longest command.
constexpr std::size_t kMostPieceBytes = std::size_t{256} * 1024;
constexpr std::size_t kMostNodeBytes = std::size_t{512} * 1024;

class LiveExecs {
 public:
  void Add(const std::shared_ptr<GraphExec>& exec) {
    std::lock_guard lock(mutex_);
    execs_[exec.get()] = exec;
  }
  std::shared_ptr<GraphExec> Find(const void* handle) {
    std::lock_guard lock(mutex_);
    const auto found = execs_.find(handle);
    return found == execs_.end() ? nullptr : found->second;
  }
  std::shared_ptr<GraphExec> Take(const void* handle) {
    std::lock_guard lock(mutex_);
    const auto found = execs_.find(handle);
    if (found == execs_.end()) return nullptr;
    std::shared_ptr<GraphExec> exec = std::move(found->second);
    execs_.erase(found);
    return exec;
  }
  std::map<const void*, std::shared_ptr<GraphExec>> TakeAll() {
    std::lock_guard lock(mutex_);
    return std::exchange(execs_, {});
  }

 private:
  std::mutex mutex_;
  std::map<const void*, std::shared_ptr<GraphExec>> execs_;
};

LiveExecs& TheExecs() {
  static auto* const execs = new LiveExecs();
  return *execs;
}

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

bool CanBeDisabled(const GraphNode& node) {
  const cudaGraphNodeType type = TypeOf(node.work);
  return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemcpy ||
         type == cudaGraphNodeTypeMemset;
}

}  // namespace

cudaError_t GraphExec::Instantiate(const Graph& graph, unsigned long long flags,
                                   std::shared_ptr<GraphExec>& exec) {
  exec.reset(new GraphExec(graph, flags));
  TORPOR_TRY(exec->Rebuild());
  TheExecs().Add(exec);
  return cudaSuccess;
}

GraphExec::GraphExec(const Graph& graph, unsigned long long flags)
    : flags_(flags), graph_(graph.Clone()) {
  IndexOriginals(*graph_);
}

GraphExec::~GraphExec() { DestroyParts(); }

std::shared_ptr<GraphExec> GraphExec::Find(cudaGraphExec_t handle) {
  return TheExecs().Find(handle);
}

bool GraphExec::Destroy(cudaGraphExec_t handle) { return TheExecs().Take(handle) != nullptr; }

void GraphExec::DestroyAll() { TheExecs().TakeAll(); }

std::unique_ptr<Graph> GraphExec::CloneGraph() {
  const auto lock = AwaitIdle();
  return graph_->Clone();
}

void GraphExec::IndexOriginals(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    own_[node->original] = node.get();
    if (const auto* child = std::get_if<ChildWork>(&node->work)) IndexOriginals(*child->graph);
  }
}

GraphNode* GraphExec::FindOwn(cudaGraphNode_t node) {
  const auto found = own_.find(node);
  return found == own_.end() ? nullptr : found->second;
}

std::unique_lock<std::mutex> GraphExec::AwaitIdle() {
  std::unique_lock lock(mutex_);
  became_idle_.wait(lock, [&] { return !is_launching_; });
  return lock;
}

cudaError_t GraphExec::CommandsOf(const GraphNode& node,
                                  std::vector<wire::GraphCommand>& commands) const {
  commands.clear();
  if (disabled_.contains(&node)) return cudaSuccess;
  TORPOR_TRY(EncodeWork(node.work, commands));
  return BytesOf(commands) <= kMostNodeBytes ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t GraphExec::Rebuild() {
  DestroyParts();
  planned_.clear();
  memory_nodes_.clear();
  const auto runner_of = [&](const GraphNode& node) {
    return planned_[&node].runner = RunnerOf(node.work);
  };
  if (!MakePlan(*graph_, runner_of, stages_)) return cudaErrorInvalidValue;
  parts_.resize(stages_.size());
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const std::vector<PlannedNode>& nodes = stages_[i].executor;
    for (std::size_t place = 0; place < nodes.size(); ++place) {
      planned_[nodes[place].node] = {Runner::kExecutor, i, place};
      const cudaGraphNodeType type = TypeOf(nodes[place].node->work);
      if (type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree)
        memory_nodes_.push_back(nodes[place].node);
    }
    TORPOR_TRY(CreatePart(stages_[i], parts_[i]));
  }
  return cudaSuccess;
}

cudaError_t GraphExec::CreatePart(const Stage& stage, Part& part) {
  if (stage.executor.empty()) return cudaSuccess;
  const std::uint64_t graph = Core().MintHandle(HandleKind::kGraph);
  TORPOR_TRY(Core().Create(graph, Encode(wire::GraphCreate{graph})));
  part.wire = graph;
  wire::GraphAddNodes piece{graph, 0, {}};
  std::size_t piece_bytes = 0;
  const auto send = [&] { return Core().Configure(graph, Encode(piece), piece.first); };
  for (const PlannedNode& planned : stage.executor) {
    wire::GraphNode& node = piece.nodes.emplace_back();
    TORPOR_TRY(CommandsOf(*planned.node, node.commands));
    node.dependencies = planned.dependencies;
    part.sent.push_back(node.commands);
    piece_bytes += BytesOf(node.commands) + sizeof(std::uint32_t) * node.dependencies.size();
    if (piece_bytes < kMostPieceBytes) continue;
    TORPOR_TRY(send());
    piece = {graph, static_cast<std::uint32_t>(part.sent.size()), {}};
    piece_bytes = 0;
  }
  return piece.nodes.empty() ? cudaSuccess : send();
}

void GraphExec::DestroyParts() {
  for (const Part& part : std::exchange(parts_, {}))
    if (part.wire != 0) (void)Core().Destroy(part.wire, Encode(wire::GraphDestroy{part.wire}));
}

cudaError_t GraphExec::Tell(const GraphNode& node) {
  const Planned planned = planned_.at(&node);
  if (RunnerOf(node.work) != planned.runner) return Rebuild();
  if (planned.runner != Runner::kExecutor) return cudaSuccess;
  std::vector<wire::GraphCommand> commands;
  TORPOR_TRY(CommandsOf(node, commands));
  Part& part = parts_[planned.stage];
  if (Equal(commands, part.sent[planned.place])) return cudaSuccess;
  const wire::GraphSetNode change{part.wire, static_cast<std::uint32_t>(planned.place), commands};
  TORPOR_TRY(Core().Configure(part.wire, Encode(change), planned.place));
  part.sent[planned.place] = std::move(commands);
  return cudaSuccess;
}

cudaError_t GraphExec::TellAll() {
  std::vector<const GraphNode*> nodes;
  for (const auto& [node, planned] : planned_) nodes.push_back(node);
  for (const GraphNode* node : nodes) TORPOR_TRY(Tell(*node));
  return cudaSuccess;
}

cudaError_t GraphExec::SetWork(cudaGraphNode_t node, NodeWork work) {
  const auto lock = AwaitIdle();
  GraphNode* const own = FindOwn(node);
  if (!own || own->work.index() != work.index()) return cudaErrorInvalidValue;
  if (auto* child = std::get_if<ChildWork>(&own->work)) {
    cudaGraphExecUpdateResultInfo info{};
    const Graph& changed = *std::get<ChildWork>(work).graph;
    return UpdateWork(*child->graph, changed, info) ? TellAll() : cudaErrorGraphExecUpdateFailure;
  }
  own->work = std::move(work);
  return Tell(*own);
}

cudaError_t GraphExec::SetEnabled(cudaGraphNode_t node, bool enabled) {
  const auto lock = AwaitIdle();
  const GraphNode* const own = FindOwn(node);
  if (!own || !CanBeDisabled(*own)) return cudaErrorInvalidValue;
  if (enabled)
    disabled_.erase(own);
  else
    disabled_.insert(own);
  return Tell(*own);
}

cudaError_t GraphExec::IsEnabled(cudaGraphNode_t node, bool& enabled) {
  const auto lock = AwaitIdle();
  const GraphNode* const own = FindOwn(node);
  if (!own || !CanBeDisabled(*own)) return cudaErrorInvalidValue;
  enabled = !disabled_.contains(own);
  return cudaSuccess;
}

cudaError_t GraphExec::Update(const Graph& graph, cudaGraphExecUpdateResultInfo& info) {
  const auto lock = AwaitIdle();
  return UpdateWork(*graph_, graph, info) ? TellAll() : cudaErrorGraphExecUpdateFailure;
}

// What the launch allocates and frees, as programs see it: the memory itself is always there.
cudaError_t GraphExec::BeginMemory() {
  const bool frees_itself = (flags_ & cudaGraphInstantiateFlagAutoFreeOnLaunch) != 0;
  for (const GraphNode* node : memory_nodes_) {
    const auto* allocation = std::get_if<AllocationWork>(&node->work);
    if (allocation && allocation->memory->is_in_use() && !frees_itself)
      return cudaErrorInvalidValue;
  }
  for (const GraphNode* node : memory_nodes_) {
    if (const auto* allocation = std::get_if<AllocationWork>(&node->work))
      allocation->memory->SetInUse(true);
    else if (const auto memory = GraphMemory::Find(Address(std::get<FreeWork>(node->work).address)))
      memory->SetInUse(false);
  }
  return cudaSuccess;
}

cudaError_t GraphExec::Launch(const StreamPtr& stream) {
  const auto lock = AwaitIdle();
  TORPOR_TRY(BeginMemory());
  bool is_done = false;
  TORPOR_TRY(Continue(stream, {}, /*has_arrived=*/false, is_done));
  is_launching_ = !is_done;
  return cudaSuccess;
}

// On the thread that launches until the first node that must wait for the stream, then on that of
// host functions, which holds back what else comes to the stream.
cudaError_t GraphExec::Continue(const StreamPtr& stream, Position at, bool has_arrived,
                                bool& is_done) {
  is_done = false;
  for (; at.stage < stages_.size(); ++at.stage, at.client_node = 0) {
    const std::vector<const GraphNode*>& client = stages_[at.stage].client;
    for (; at.client_node < client.size(); ++at.client_node) {
      const GraphNode& node = *client[at.client_node];
      if (disabled_.contains(&node)) continue;
      if (!has_arrived && planned_.at(&node).runner == Runner::kClientAwaiting)
        return QueueHostFunction(stream,
                                 [self = shared_from_this(), stream, at](cudaError_t state) {
                                   self->Resume(stream, at, state);
                                 });
      TORPOR_TRY(RunInClient(node.work, stream));
      // What was only sent puts the stream behind again.
      if (planned_.at(&node).runner == Runner::kClientAtOnce) has_arrived = false;
    }
    has_arrived = false;
    const std::uint64_t part = parts_[at.stage].wire;
    if (part == 0) continue;
    TORPOR_TRY(SendManagedVariables());
    TORPOR_TRY(Send(wire::GraphLaunch{part, stream->wire}));
  }
  is_done = true;
  return cudaSuccess;
}

// What it reads nobody changes meanwhile: all that do wait for the launch.
void GraphExec::Resume(const StreamPtr& stream, Position position, cudaError_t state) {
  bool is_done = false;
  const OwnCalls own_calls;  // of an error the program's next synchronisation tells
  const bool goes_on = state == cudaSuccess &&
                       Continue(stream, position, /*has_arrived=*/true, is_done) == cudaSuccess;
  if (goes_on && !is_done) return;
  std::lock_guard lock(mutex_);
  is_launching_ = false;
  became_idle_.notify_all();
}

}  // namespace torpor::shim
