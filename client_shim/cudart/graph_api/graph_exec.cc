#include "client_shim/cudart/graph_api/graph_exec.h"

#include <algorithm>
#include <map>
#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/graph_memory.h"
#include "client_shim/cudart/graph/graph_update.h"
#include "client_shim/cudart/graph_api/work_commands.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/stream/host_functions.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// All instantiated graphs that the program has not destroyed. Thread-safe.
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
  template <typename Condition>
  std::vector<std::shared_ptr<GraphExec>> TakeIf(const Condition& condition) {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<GraphExec>> taken;
    std::erase_if(execs_, [&](const auto& entry) {
      if (!condition(*entry.second)) return false;
      taken.push_back(entry.second);
      return true;
    });
    return taken;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, std::shared_ptr<GraphExec>> execs_;
};

LiveExecs& TheExecs() {
  static auto* const execs = new LiveExecs();
  return *execs;
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
    : core_(Core()), flags_(flags), graph_(graph.Clone()) {
  IndexOriginals(*graph_);
}

std::shared_ptr<GraphExec> GraphExec::Find(cudaGraphExec_t handle) {
  return TheExecs().Find(handle);
}

bool GraphExec::Destroy(cudaGraphExec_t handle) { return TheExecs().Take(handle) != nullptr; }

void GraphExec::DestroyAll() {
  TheExecs().TakeIf([](const GraphExec& exec) { return &exec.core_ == &Core(); });
}

// Maps the nodes of the given graph, and of all child graphs, to the nodes of the clone.
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
  UseCore(core_);
  std::unique_lock lock(mutex_);
  became_idle_.wait(lock, [&] { return !is_launching_; });
  return lock;
}

cudaError_t GraphExec::Rebuild() { return ExecPlan::Make(*graph_, disabled_, plan_); }

cudaError_t GraphExec::Tell(const GraphNode& node) {
  const bool moves = RunnerOf(node.work) != plan_->runner_of(node);
  return moves ? Rebuild() : plan_->Tell(node, disabled_);
}

cudaError_t GraphExec::TellAll() {
  for (const GraphNode* node : plan_->nodes()) TORPOR_TRY(Tell(*node));
  return cudaSuccess;
}

cudaError_t GraphExec::TakeWork(Graph& own, const Graph& given,
                                cudaGraphExecUpdateResultInfo& info) {
  ReplacedWork replaced;
  if (!UpdateWork(own, given, info, replaced)) return cudaErrorGraphExecUpdateFailure;
  const cudaError_t error = TellAll();
  if (error == cudaSuccess) return cudaSuccess;
  for (auto& [node, work] : replaced) node->work = std::move(work);
  (void)TellAll();  // restores the old work at the executor
  return error;
}

cudaError_t GraphExec::SetWork(cudaGraphNode_t node, NodeWork work) {
  const auto lock = AwaitIdle();
  GraphNode* const own = FindOwn(node);
  if (!own || own->work.index() != work.index()) return cudaErrorInvalidValue;
  if (auto* child = std::get_if<ChildWork>(&own->work)) {
    cudaGraphExecUpdateResultInfo ignored{};
    return TakeWork(*child->graph, *std::get<ChildWork>(work).graph, ignored);
  }
  NodeWork old = own->work;
  SetParameters(own->work, std::move(work));
  const cudaError_t error = Tell(*own);
  if (error != cudaSuccess) own->work = std::move(old);
  return error;
}

cudaError_t GraphExec::SetEnabled(cudaGraphNode_t node, bool enabled) {
  const auto lock = AwaitIdle();
  const GraphNode* const own = FindOwn(node);
  if (!own || !CanBeDisabled(*own)) return cudaErrorInvalidValue;
  const ExecPlan::Nodes old = disabled_;
  if (enabled)
    disabled_.erase(own);
  else
    disabled_.insert(own);
  const cudaError_t error = Tell(*own);
  if (error != cudaSuccess) disabled_ = old;
  return error;
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
  return TakeWork(*graph_, graph, info);
}

// Makes the launch's allocations and frees visible to the program; the memory itself always exists.
cudaError_t GraphExec::BeginMemory() {
  const bool frees_itself = (flags_ & cudaGraphInstantiateFlagAutoFreeOnLaunch) != 0;
  for (const GraphNode* node : plan_->memory_nodes()) {
    const auto* allocation = std::get_if<AllocationWork>(&node->work);
    if (allocation && allocation->memory->is_in_use() && !frees_itself)
      return cudaErrorInvalidValue;
  }
  for (const GraphNode* node : plan_->memory_nodes()) {
    if (const auto* allocation = std::get_if<AllocationWork>(&node->work))
      allocation->memory->SetInUse(true);
    else if (const auto memory = GraphMemory::Find(Address(std::get<FreeWork>(node->work).address)))
      memory->SetInUse(false);
  }
  return cudaSuccess;
}

cudaError_t GraphExec::FollowLastLaunch(const ClientStream& stream) {
  const auto last = std::exchange(last_stream_, stream.wire);
  if (!last || *last == stream.wire || plan_->is_one_command()) return cudaSuccess;
  return ComeBehind(stream.wire, *last);
}

cudaError_t GraphExec::Launch(const ClientStreamPtr& stream) {
  if (&core_ != &Core()) {
    Core().WarnOnce("graph device",
                    "a graph runs only on the device that was current at instantiation");
    return cudaErrorInvalidValue;
  }
  const auto lock = AwaitIdle();
  TORPOR_TRY(FollowLastLaunch(*stream));
  TORPOR_TRY(BeginMemory());
  bool is_done = false;
  TORPOR_TRY(Continue(stream, {}, /*has_arrived=*/false, is_done));
  is_launching_ = !is_done;
  return cudaSuccess;
}

// Runs on the launching thread up to the first node that must wait for the stream, then on the
// thread of host functions, which holds back later work of the stream.
cudaError_t GraphExec::Continue(const ClientStreamPtr& stream, Position at, bool has_arrived,
                                bool& is_done) {
  is_done = false;
  const std::vector<Stage>& stages = plan_->stages();
  for (; at.stage < stages.size(); ++at.stage, at.client_node = 0) {
    const std::vector<const GraphNode*>& client = stages[at.stage].client;
    for (; at.client_node < client.size(); ++at.client_node) {
      const GraphNode& node = *client[at.client_node];
      if (disabled_.contains(&node)) continue;
      const Runner runner = plan_->runner_of(node);
      if (!has_arrived && runner == Runner::kClientAwaiting)
        return QueueHostFunction(stream,
                                 [self = shared_from_this(), stream, at](cudaError_t state) {
                                   self->Resume(stream, at, state);
                                 });
      TORPOR_TRY(RunInClient(node.work, stream));
      // Sent work may still run: the stream has not arrived any more.
      if (runner == Runner::kClientAtOnce) has_arrived = false;
    }
    has_arrived = false;
    const std::uint64_t part = plan_->part(at.stage);
    if (part == 0) continue;
    TORPOR_TRY(LaunchWithVariables([&] { return Send(wire::GraphLaunch{part, stream->wire}); }));
  }
  is_done = true;
  return cudaSuccess;
}

// Reads without the lock: all changes wait for the end of the launch.
void GraphExec::Resume(const ClientStreamPtr& stream, Position position, cudaError_t state) {
  bool is_done = false;
  const OwnCalls own_calls;  // the program's next synchronisation reports errors
  const bool goes_on = state == cudaSuccess &&
                       Continue(stream, position, /*has_arrived=*/true, is_done) == cudaSuccess;
  if (goes_on && !is_done) return;
  std::lock_guard lock(mutex_);
  is_launching_ = false;
  became_idle_.notify_all();
}

}  // namespace torpor::shim
