#include "server/controller/node_snapshots.h"

#include <algorithm>
#include <optional>

#include "base/uuid.h"

namespace torpor::server {
namespace {

void Add(const GpuMemoryUse::Session& session, bool is_replica, MemorySnapshot& memory) {
  memory.used += session.used;
  memory.cached += session.held - session.used;
  if (is_replica) memory.replicas += session.held;
}

const char* NameOf(GpuExecutor::State state) {
  switch (state) {
    case GpuExecutor::State::kAbsent:
      return "lost";
    case GpuExecutor::State::kStarting:
    case GpuExecutor::State::kRecovering:
      return "starting";
    case GpuExecutor::State::kReady:
      return "ready";
  }
  return "";
}

}  // namespace

bool NodeSnapshots::IsReplica(SessionId id, GpuIndex gpu) const {
  const SessionPtr session = sessions_.Find(id);
  if (!session || !session->image.HasReplicaOn(gpu)) return false;
  // The last copy is none that could go without loss.
  return session->image.gpu() || session->image.replicas().size() > 1;
}

NodeSnapshot NodeSnapshots::Take() const {
  NodeSnapshot node;
  node.state = requests_.is_draining()   ? "draining"
               : executors_.IsAnyReady() ? "ready"
                                         : "starting";
  for (const auto& [id, instance] : instances_) {
    const std::optional<scheduler::Standing> standing = scheduler_.StandingOf(instance.function());
    if (standing) node.alpha = standing->alpha;
  }
  for (const auto& [index, executor] : executors_) node.gpus.push_back(SnapshotOf(executor));
  for (const auto& [id, instance] : instances_) node.functions.push_back(SnapshotOf(instance));
  node.queued_requests = requests_.queued();
  node.sessions = sessions_.all().size();
  node.swaps_in = swaps_.totals().swaps_in;
  node.swaps_out = swaps_.totals().swaps_out;
  node.host_image_bytes = repository_.image_bytes();
  return node;
}

GpuSnapshot NodeSnapshots::SnapshotOf(const GpuExecutor& executor) const {
  GpuSnapshot gpu;
  gpu.gpu = executor.gpu().value;
  gpu.name = executor.registration().device().name();
  gpu.uuid = FormatUuid(executor.registration().device().uuid());
  gpu.state = NameOf(executor.state());
  gpu.executor_pid = executor.is_attached() ? executor.registration().pid() : 0;
  gpu.pool_bytes = executor.registration().pool_bytes();
  gpu.swap_group_bytes = executor.registration().group_bytes();
  gpu.link_bytes_per_second = executor.registration().link_bytes_per_second();
  gpu.executor_restarts = executor.starts() > 0 ? executor.starts() - 1 : 0;
  gpu.busy_seconds = leases_.BusySecondsOf(executor.gpu());
  for (const auto& [id, memory] : executor.memory().sessions) {
    Add(memory, IsReplica(id, executor.gpu()), gpu.memory);
  }
  gpu.free_bytes = executor.memory().free;
  gpu.fragmented_bytes = executor.memory().fragmented;
  const auto& gpus = scheduler_.node().gpus;
  if (const auto found = gpus.find(executor.gpu()); found != gpus.end()) {
    gpu.used_bytes = found->second.used;
  }
  for (const auto& [id, instance] : instances_) {
    if (!instance.lease || !instance.lease->IsOn(executor.gpu())) continue;
    gpu.leased_to = instance.config.name;
    gpu.busy_seconds += ToSeconds(loop_.Now() - instance.lease->since);
  }
  return gpu;
}

ObjectiveSnapshot NodeSnapshots::ObjectiveOf(const FunctionInstance& instance) const {
  const scheduler::FunctionState& function = scheduler_.node().functions.at(instance.function());
  ObjectiveSnapshot objective;
  objective.deadline = function.objective.deadline;
  objective.percentile = function.objective.percentile;
  objective.priority = function.priority;
  objective.max_waiting = instance.config.max_waiting;
  objective.keep_alive = function.keep_alive;
  objective.waiting = function.waiting;
  objective.finished = function.finished;
  objective.in_time = function.in_time;
  if (const std::optional<scheduler::Standing> standing = scheduler_.StandingOf(function.id)) {
    objective.required_count = standing->required_count;
    objective.is_first_group = standing->is_high;
  }
  return objective;
}

FunctionSnapshot NodeSnapshots::SnapshotOf(const FunctionInstance& instance) const {
  FunctionSnapshot function;
  function.name = instance.config.name;
  const std::vector<SessionPtr> sessions = sessions_.Of(instance);
  function.sessions = static_cast<std::uint64_t>(std::count_if(
      sessions.begin(), sessions.end(),
      [](const SessionPtr& session) { return session->state == ClientSession::State::kOpen; }));
  function.state = instance.lease                     ? "running"
                   : requests_.HasQueued(instance.id) ? "queued"
                   : function.sessions == 0           ? "absent"
                                                      : "idle";
  DescribeMemory(instance, function);
  function.is_pinned = scheduler_.node().instances.at(instance.id).image.is_pinned;
  function.objective = ObjectiveOf(instance);
  function.requests = instance.totals.requests;
  function.errors = instance.totals.errors;
  function.gpu_seconds = instance.totals.gpu_seconds;
  function.host_byte_seconds = instance.totals.host_byte_seconds;
  function.swaps_in = instance.totals.swaps_in;
  return function;
}

void NodeSnapshots::DescribeMemory(const FunctionInstance& instance,
                                   FunctionSnapshot& function) const {
  for (const InstanceId shard : instance.shards) {
    const scheduler::Instance& placed = scheduler_.node().instances.at(shard);
    // The scheduler counts the memory of a function without processes as present on its last GPU.
    for (const auto& [gpu, copy] : placed.image.copies) {
      const bool is_resident =
          copy.state == scheduler::Copy::State::kPresent && function.sessions > 0;
      if (is_resident) function.resident_gpus.push_back(gpu.value);
    }
    function.image_bytes += placed.image.bytes;
  }
  for (const auto& [gpu, executor] : executors_) {
    for (const SessionId id : instance.sessions) {
      const auto found = executor.memory().sessions.find(id);
      if (found == executor.memory().sessions.end()) continue;
      Add(found->second, IsReplica(id, gpu), function.memory[gpu.value]);
    }
  }
}

}  // namespace torpor::server
