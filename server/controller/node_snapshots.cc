#include "server/controller/node_snapshots.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/uuid.h"
#include "scheduler/event_fields.h"

namespace torpor::server {
namespace {

void Add(const GpuMemoryUse::Session& session, bool is_replica, MemorySnapshot& memory) {
  memory.used += session.used;
  memory.cached += session.held - session.used;
  if (is_replica) memory.replicas += session.held;
}

// The snapshot of all instances as of one; its requests are left to the caller.
InstanceSnapshot Together(const std::vector<InstanceSnapshot>& instances) {
  // The first that holds for any instance.
  constexpr std::array<const char*, 4> kStates = {"running", "queued", "idle", "absent"};
  const auto rank = [&](const std::string& state) {
    return std::find(kStates.begin(), kStates.end(), state) - kStates.begin();
  };
  const auto health = [](const std::string& word) {
    constexpr auto& kWords = scheduler::kWordsOf<scheduler::Health>;
    return std::find(kWords.begin(), kWords.end(), word) - kWords.begin();
  };
  InstanceSnapshot all = instances.front();
  for (auto one = instances.begin() + 1; one != instances.end(); ++one) {
    if (rank(one->state) < rank(all.state)) all.state = one->state;
    if (health(one->health) < health(all.health)) all.health = one->health;
    all.resident_gpus.insert(all.resident_gpus.end(), one->resident_gpus.begin(),
                             one->resident_gpus.end());
    for (const auto& [gpu, memory] : one->memory) {
      all.memory[gpu].used += memory.used;
      all.memory[gpu].cached += memory.cached;
      all.memory[gpu].replicas += memory.replicas;
    }
    all.is_pinned = all.is_pinned && one->is_pinned;
    all.image_bytes += one->image_bytes;
    all.sessions += one->sessions;
    all.gpu_seconds += one->gpu_seconds;
    all.host_byte_seconds += one->host_byte_seconds;
    all.swaps_in += one->swaps_in;
  }
  if (instances.size() == 1) return all;
  all.upstream.clear();
  std::sort(all.resident_gpus.begin(), all.resident_gpus.end());
  all.resident_gpus.erase(std::unique(all.resident_gpus.begin(), all.resident_gpus.end()),
                          all.resident_gpus.end());
  return all;
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
  // The last copy cannot go without loss.
  return session->image.gpu() || session->image.replicas().size() > 1;
}

NodeSnapshot NodeSnapshots::Take() const {
  NodeSnapshot node;
  node.state = requests_.is_draining()   ? "draining"
               : executors_.IsAnyReady() ? "ready"
                                         : "starting";
  for (const auto& [name, function] : instances_.functions()) {
    if (const auto standing = scheduler_.StandingOf(function->id)) node.alpha = standing->alpha;
    node.functions.push_back(SnapshotOf(*function));
  }
  for (const GpuIndex gpu : executors_.gpus()) node.gpus.push_back(SnapshotOf(gpu));
  node.queued_requests = requests_.queued();
  node.sessions = sessions_.all().size();
  node.swaps_in = swaps_.totals().swaps_in;
  node.swaps_out = swaps_.totals().swaps_out;
  node.host_image_bytes = repository_.image_bytes();
  return node;
}

GpuSnapshot NodeSnapshots::SnapshotOf(GpuIndex index) const {
  const v1::ExecutorMessage::Register& registration = executors_.RegistrationOf(index);
  GpuSnapshot gpu;
  gpu.gpu = index.value;
  gpu.name = registration.device().name();
  gpu.uuid = FormatUuid(registration.device().uuid());
  const SpareExecutors::Spare* const spare = spares_.Ready(index);
  gpu.spare_pid = spare ? spare->what.pid() : 0;
  gpu.pool_bytes = registration.pool_bytes();
  gpu.swap_group_bytes = registration.group_bytes();
  gpu.link_bytes_per_second = registration.link_bytes_per_second();
  gpu.busy_seconds = leases_.BusySecondsOf(index);
  DescribeExecutors(index, gpu);
  const auto& gpus = scheduler_.node().gpus;
  if (const auto found = gpus.find(index); found != gpus.end()) gpu.used_bytes = found->second.used;
  for (const auto& [id, instance] : instances_) {
    if (!instance.lease || !instance.lease->IsOn(index)) continue;
    gpu.leased_to = instance.full_name;
    gpu.busy_seconds += ToSeconds(loop_.Now() - instance.lease->since);
  }
  return gpu;
}

void NodeSnapshots::DescribeExecutors(GpuIndex index, GpuSnapshot& gpu) const {
  Bytes held = 0;
  auto nearest = GpuExecutor::State::kAbsent;
  for (const GpuExecutor* const executor : executors_.On(index)) {
    const bool is_attached = executor->is_attached();
    const v1::ExecutorMessage::Register& registration = executor->registration();
    gpu.executors.push_back(
        {.pid = is_attached ? registration.pid() : 0,
         .state = NameOf(executor->state()),
         .domain = domains_.NameOf(executor->domain()),
         .not_confined = {registration.not_confined().begin(), registration.not_confined().end()}});
    if (executor->seat().number == 0) gpu.executor_pid = gpu.executors.back().pid;
    if (is_attached) gpu.pool_owner_pid = registration.pool_owner_pid();
    if (executor->starts() > 0) gpu.executor_restarts += executor->starts() - 1;
    nearest = std::max(nearest, executor->state());
    for (const auto& [id, memory] : executor->memory().sessions) {
      Add(memory, IsReplica(id, index), gpu.memory);
      held += memory.held;
    }
    gpu.free_bytes = executor->memory().free;
    gpu.fragmented_bytes = executor->memory().fragmented;
  }
  gpu.state = NameOf(nearest);
  // Each of several knows of the others' memory only what it was when it last took some itself.
  if (gpu.executors.size() > 1 && nearest >= GpuExecutor::State::kRecovering) {
    gpu.free_bytes = gpu.pool_bytes - std::min(held, gpu.pool_bytes);
  }
}

ObjectiveSnapshot NodeSnapshots::ObjectiveOf(const RegisteredFunction& registered) const {
  const scheduler::FunctionState& function = scheduler_.node().functions.at(registered.id);
  ObjectiveSnapshot objective;
  objective.deadline = function.objective.deadline;
  objective.percentile = function.objective.percentile;
  objective.priority = function.priority;
  objective.max_waiting = registered.config.max_waiting;
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

FunctionSnapshot NodeSnapshots::SnapshotOf(const RegisteredFunction& function) const {
  std::vector<InstanceSnapshot> instances;
  for (const InstanceId id : function.instances) {
    instances.push_back(SnapshotOf(instances_.At(id)));
  }
  FunctionSnapshot snapshot;
  static_cast<InstanceSnapshot&>(snapshot) = Together(instances);
  snapshot.name = function.config.name;
  snapshot.requests = function.requests;
  snapshot.errors = function.errors;
  snapshot.strikes = function.strikes.strikes(loop_.Now());
  snapshot.refused_for = std::max(function.strikes.refused_until() - loop_.Now(), Duration{});
  snapshot.memory_limit = function.config.memory_limit;
  snapshot.objective = ObjectiveOf(function);
  if (function.has_several_instances()) snapshot.instances = std::move(instances);
  return snapshot;
}

InstanceSnapshot NodeSnapshots::SnapshotOf(const FunctionInstance& instance) const {
  InstanceSnapshot snapshot;
  snapshot.name = instance.name;
  const std::vector<SessionPtr> sessions = sessions_.Of(instance);
  snapshot.sessions = static_cast<std::uint64_t>(std::count_if(
      sessions.begin(), sessions.end(),
      [](const SessionPtr& session) { return session->state == ClientSession::State::kOpen; }));
  const scheduler::Instance& placed = scheduler_.node().instances.at(instance.id);
  snapshot.state = instance.lease           ? "running"
                   : HasQueued(placed)      ? "queued"
                   : snapshot.sessions == 0 ? "absent"
                                            : "idle";
  DescribeMemory(instance, snapshot);
  snapshot.is_pinned = placed.image.is_pinned;
  snapshot.requests = instance.totals.requests;
  snapshot.gpu_seconds = instance.totals.gpu_seconds;
  snapshot.host_byte_seconds = instance.totals.host_byte_seconds;
  snapshot.swaps_in = instance.totals.swaps_in;
  snapshot.upstream = instance.upstream;
  snapshot.health = scheduler::WordOf(instance.standing.health);
  return snapshot;
}

bool NodeSnapshots::HasQueued(const scheduler::Instance& placed) const {
  return std::any_of(placed.waiting.begin(), placed.waiting.end(), [this](const auto& entry) {
    return !scheduler_.node().requests.at(entry.second).is_implicit;
  });
}

void NodeSnapshots::DescribeMemory(const FunctionInstance& instance,
                                   InstanceSnapshot& snapshot) const {
  for (const InstanceId shard : instance.shards) {
    const scheduler::Instance& placed = scheduler_.node().instances.at(shard);
    // The scheduler counts the memory of a function without processes as present on its last GPU.
    for (const auto& [gpu, copy] : placed.image.copies) {
      const bool is_resident =
          copy.state == scheduler::Copy::State::kPresent && snapshot.sessions > 0;
      if (is_resident) snapshot.resident_gpus.push_back(gpu.value);
    }
    snapshot.image_bytes += placed.image.bytes;
  }
  for (const auto& [seat, executor] : executors_) {
    for (const SessionId id : instance.sessions) {
      const auto found = executor.memory().sessions.find(id);
      if (found == executor.memory().sessions.end()) continue;
      Add(found->second, IsReplica(id, seat.gpu), snapshot.memory[seat.gpu.value]);
    }
  }
}

}  // namespace torpor::server
