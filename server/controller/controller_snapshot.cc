#include <algorithm>
#include <string>

#include "base/uuid.h"
#include "server/controller/controller.h"

// The controller's state, for those who look from outside.
namespace torpor::server {
namespace {

void Add(const DeviceMemory::Session& session, MemorySnapshot& memory) {
  memory.used += session.used;
  memory.cached += session.held - session.used;
}

}  // namespace

NodeSnapshot Controller::Snapshot() const {
  NodeSnapshot node;
  node.state = is_draining_ ? "draining" : IsReady() ? "ready" : "starting";
  node.policy = options_.config.scheduling.policy;
  for (const auto& [id, instance] : instances_) {
    const std::optional<scheduler::Standing> standing = scheduler_.StandingOf(FunctionOf(instance));
    if (standing) node.alpha = standing->alpha;
  }
  for (const auto& [index, executor] : executors_) node.gpus.push_back(SnapshotOf(executor));
  for (const auto& [id, instance] : instances_) node.functions.push_back(SnapshotOf(instance));
  node.queued_requests = static_cast<std::uint64_t>(std::count_if(
      requests_.begin(), requests_.end(),
      [](const auto& request) { return request.second.state == Request::State::kQueued; }));
  node.sessions = sessions_.size();
  node.swaps_in = swaps_in_;
  node.swaps_out = swaps_out_;
  node.host_image_bytes = repository_.image_bytes();
  return node;
}

GpuSnapshot Controller::SnapshotOf(const Executor& executor) const {
  GpuSnapshot gpu;
  gpu.gpu = executor.gpu().value;
  gpu.name = executor.registration().device().name();
  gpu.uuid = FormatUuid(executor.registration().device().uuid());
  gpu.state = executor.state() == Executor::State::kReady    ? "ready"
              : executor.state() == Executor::State::kAbsent ? "lost"
                                                             : "starting";
  gpu.executor_pid = executor.is_attached() ? executor.registration().pid() : 0;
  gpu.pool_bytes = executor.registration().pool_bytes();
  gpu.swap_group_bytes = executor.registration().group_bytes();
  gpu.link_bytes_per_second = executor.registration().link_bytes_per_second();
  gpu.executor_restarts = executor.starts() > 0 ? executor.starts() - 1 : 0;
  const auto busy = busy_seconds_.find(executor.gpu());
  gpu.busy_seconds = busy == busy_seconds_.end() ? 0 : busy->second;
  for (const auto& [id, memory] : executor.memory().sessions) Add(memory, gpu.memory);
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

ObjectiveSnapshot Controller::ObjectiveOf(const Instance& instance) const {
  const scheduler::Function& function = scheduler_.node().functions.at(FunctionOf(instance));
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

FunctionSnapshot Controller::SnapshotOf(const Instance& instance) const {
  FunctionSnapshot function;
  function.name = instance.config.name;
  function.sessions = static_cast<std::uint64_t>(std::count_if(
      instance.sessions.begin(), instance.sessions.end(),
      [this](SessionId id) { return sessions_.at(id)->state == Session::State::kOpen; }));
  const bool is_queued = std::any_of(requests_.begin(), requests_.end(), [&](const auto& request) {
    return request.second.instance == instance.id &&
           request.second.state == Request::State::kQueued;
  });
  function.state = instance.lease           ? "running"
                   : is_queued              ? "queued"
                   : function.sessions == 0 ? "absent"
                                            : "idle";
  for (const InstanceId part : instance.parts) {
    const scheduler::Instance& placed = scheduler_.node().instances.at(part);
    // To the scheduler the memory of a function without processes is present where it ran last.
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
      if (found != executor.memory().sessions.end()) Add(found->second, function.memory[gpu.value]);
    }
  }
  function.is_pinned = scheduler_.node().instances.at(instance.id).image.is_pinned;
  function.objective = ObjectiveOf(instance);
  function.requests = instance.requests;
  function.errors = instance.errors;
  function.gpu_seconds = instance.gpu_seconds;
  function.host_byte_seconds = instance.host_byte_seconds;
  function.swaps_in = instance.swaps_in;
  return function;
}

}  // namespace torpor::server
