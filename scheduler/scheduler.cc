#include "scheduler/scheduler.h"

#include <algorithm>
#include <utility>
#include <vector>

// What each event means for the parts.
namespace torpor::scheduler {

Scheduler::Scheduler(Policies policies, SchedulerOptions options)
    : policies_(std::move(policies)),
      options_(options),
      queue_(node_, *policies_.queue, *policies_.binding, options_.too_late, outbox_),
      images_(node_, *policies_.eviction, *policies_.binding, queue_,
              {.evicts = options_.evicts, .swaps_from_peers = options_.swaps_from_peers}, outbox_),
      choice_(node_, *policies_.binding, *policies_.placement, options_.evicts),
      keep_alives_(node_, images_, outbox_),
      growths_(node_, *policies_.binding, queue_, images_, outbox_),
      loads_(node_, choice_, *policies_.placement, images_, keep_alives_, outbox_),
      cold_starts_(node_, *policies_.binding, *policies_.placement, queue_, images_, outbox_),
      idle_write_back_(node_, queue_, images_, options_.idle_write_back, outbox_),
      leases_(node_, *policies_.queue, queue_, images_, keep_alives_,
              {.implicit_quantum_for_request = options_.implicit_quantum_for_request,
               .implicit_quantum = options_.implicit_quantum},
              outbox_) {
  node_.heavy_ratio = options_.constants.heavy_ratio;
}

FunctionState& Scheduler::FunctionFor(FunctionId id) {
  const auto [function, is_new] = node_.functions.try_emplace(id);
  if (is_new) {
    function->second.id = id;
    function->second.recent = RecentOutcomes(options_.constants.outcome_window);
  }
  return function->second;
}

Actions Scheduler::OnEvent(const Event& event, TimePoint now) {
  outbox_.Begin(now);
  std::visit([this](const auto& e) { Handle(e); }, event);
  queue_.ForgetOutcomes();
  keep_alives_.End();
  growths_.Retry();
  cold_starts_.Serve();
  leases_.Advance();
  EndChoices();
  ServeQueue();
  leases_.ServeTenants();
  loads_.Serve();
  idle_write_back_.Serve();
  return outbox_.Take();
}

void Scheduler::Handle(const ExecutorUp& event) {
  Handle(ExecutorDown{event.gpu});
  Gpu& gpu = node_.gpus[event.gpu];
  gpu.id = event.gpu;
  gpu.is_up = true;
  gpu.capacity = event.capacity;
  gpu.sources = event.sources;
  gpu.pcie_switch = event.pcie_switch;
  for (auto& [id, shard] : node_.instances) shard.unserved_on.erase(event.gpu);
  for (const InstanceId id : queue_.First(queue_.size())) {
    Instance& lead = node_.instances.at(id);
    if (node_.IsTooLarge(lead)) queue_.RefuseAll(lead, Refusal::kTooLarge);
  }
}

void Scheduler::Handle(const ExecutorDown& event) {
  const auto gpu = node_.gpus.find(event.gpu);
  if (gpu == node_.gpus.end()) return;
  gpu->second.is_up = false;
  std::set<InstanceId> lost;
  for (const auto& [id, shard] : node_.instances) {
    if (shard.image.copies.count(event.gpu) > 0) lost.insert(id);
  }
  for (const InstanceId id : lost) LoseImage(node_.instances.at(id), event.gpu);
  if (gpu->second.tenant) leases_.End(node_.LeadOf(gpu->second.tenant));
}

void Scheduler::Handle(const ImagesLost& event) {
  const auto gpu = node_.gpus.find(event.gpu);
  if (gpu == node_.gpus.end()) return;
  for (const InstanceId id : event.instances) {
    Instance& lead = node_.instances.at(id);
    node_.ForEachShard(lead, [&](Instance& shard) {
      if (shard.image.copies.count(event.gpu) > 0) LoseImage(shard, event.gpu);
      shard.unserved_on.insert(event.gpu);
    });
    const InstanceId tenant = gpu->second.tenant;
    if (tenant && node_.LeadOf(tenant).id == id) leases_.End(lead);
  }
}

void Scheduler::Handle(const InstancesServed& event) {
  for (const InstanceId id : event.instances) {
    node_.ForEachShard(node_.instances.at(id),
                       [&](Instance& shard) { shard.unserved_on.erase(event.gpu); });
  }
}

void Scheduler::LoseImage(Instance& shard, GpuIndex gpu) {
  const bool was_for_load = shard.image.copies.at(gpu).is_for_load;
  images_.Drop(shard, gpu);
  if (was_for_load) loads_.Refuse(node_.LeadOf(shard.id), LoadRefusal::kSwapFailed);
}

void Scheduler::Handle(const TenantSet& event) {
  if (event.weight == Tenant().weight) {
    node_.tenants.erase(event.tenant);
  } else {
    node_.tenants[event.tenant].weight = event.weight;
  }
}

void Scheduler::Handle(const FunctionSet& event) {
  FunctionState& function = FunctionFor(event.function);
  queue_.Change(function, [&] {
    if (function.objective != event.objective) function.recent.Clear();
    function.tenant = event.tenant;
    function.objective = event.objective;
    function.priority = event.priority;
    function.max_waiting = event.max_waiting;
    function.keep_alive = event.keep_alive;
  });
  for (const InstanceId id : function.instances) keep_alives_.Note(node_.instances.at(id));
}

void Scheduler::Handle(const InstanceAdded& event) {
  Instance& lead = node_.instances[event.instance];
  lead.id = event.instance;
  lead.function = event.function ? event.function : FunctionId{event.instance.value};
  lead.lead = event.instance;
  lead.secondary_shards = event.secondary_shards;
  lead.max_in_flight = event.max_in_flight;
  lead.image.keeps_replicas = event.keeps_replicas;
  lead.image.is_constant = event.is_constant;
  for (const InstanceId id : event.secondary_shards) {
    Instance& secondary = node_.instances[id];
    secondary.id = id;
    secondary.function = lead.function;
    secondary.lead = event.instance;
  }
  FunctionState& function = FunctionFor(lead.function);
  function.instances.push_back(lead.id);
}

void Scheduler::Handle(const HealthChanged& event) {
  Instance& lead = node_.instances.at(event.instance);
  lead.health = event.health;
  queue_.Rebalance(node_.FunctionOf(lead));
}

bool Scheduler::MayRemove(InstanceId id) const {
  const Instance& lead = node_.instances.at(id);
  if (!lead.tenancy.is_idle() || !lead.waiting.empty()) return false;
  bool is_quiet = true;
  node_.ForEachShard(lead, [&](const Instance& shard) {
    is_quiet = is_quiet && !growths_.HasFor(shard.id) &&
               std::all_of(shard.image.copies.begin(), shard.image.copies.end(), [](const auto& c) {
                 return c.second.state == Copy::State::kPresent && !c.second.is_saving;
               });
  });
  // Lost requests neither wait nor run.
  return is_quiet && std::none_of(node_.requests.begin(), node_.requests.end(),
                                  [id](const auto& r) { return r.second.instance == id; });
}

void Scheduler::Handle(const InstanceRemoved& event) {
  const Instance& lead = node_.instances.at(event.instance);
  std::vector<InstanceId> shards = lead.secondary_shards;
  shards.push_back(lead.id);
  loads_.Forget(lead);
  keep_alives_.Forget(lead);
  choosing_.erase(lead.id);
  queue_.cold().erase(lead.id);
  std::erase(node_.functions.at(lead.function).instances, lead.id);
  for (const InstanceId id : shards) {
    while (!node_.instances.at(id).image.copies.empty()) {
      Instance& shard = node_.instances.at(id);
      images_.Drop(shard, shard.image.copies.begin()->first);
    }
  }
  for (const InstanceId id : shards) node_.instances.erase(id);
}

void Scheduler::Handle(const FunctionRemoved& event) {
  queue_.Forget(node_.functions.at(event.function));
  node_.functions.erase(event.function);
}

void Scheduler::Handle(const RequestArrived& event) {
  Instance& instance = InstanceFor(event);
  const Request request = RequestOf(event, instance);
  const bool is_new = !event.arrival;
  if (!is_new) TakeBack(event.request);
  if (is_new && IsQueueFull(request)) {
    queue_.Count(request, false);
    outbox_.Add(Refuse{request.request, Refusal::kQueueFull});
    return;
  }
  queue_.Add(request);
  if (node_.IsTooLarge(instance)) queue_.Refuse(request.request, Refusal::kTooLarge);
}

Instance& Scheduler::InstanceFor(const RequestArrived& event) {
  return event.instance ? node_.instances.at(event.instance)
                        : queue_.ChooseInstance(node_.functions.at(event.function));
}

Request Scheduler::RequestOf(const RequestArrived& event, const Instance& instance) {
  const Objective& objective = node_.FunctionOf(instance).objective;
  // A request that comes again keeps its place among requests of the same arrival.
  const auto known = node_.requests.find(event.request);
  Request request{.request = event.request,
                  .instance = instance.id,
                  .turn = {.arrival = event.arrival.value_or(outbox_.now()),
                           .sequence = known == node_.requests.end() ? next_sequence_++
                                                                     : known->second.turn.sequence},
                  .deadline = event.deadline,
                  .is_implicit = event.is_implicit,
                  .is_for_any = !event.instance};
  const bool has_objective = objective.deadline != Duration::max() && !event.is_implicit;
  if (event.deadline == TimePoint::max() && has_objective) {
    request.deadline = request.turn.arrival + objective.deadline;
  }
  return request;
}

bool Scheduler::IsQueueFull(const Request& request) const {
  if (request.is_implicit) return false;
  const FunctionState& function = node_.FunctionOf(node_.instances.at(request.instance));
  return (function.max_waiting > 0 && function.waiting >= function.max_waiting) ||
         (options_.max_waiting > 0 && waiting() >= options_.max_waiting);
}

void Scheduler::Handle(const RequestGone& event) {
  const auto found = node_.requests.find(event.request);
  if (found == node_.requests.end()) return;
  const Request request = found->second;
  // A caller that gives up before the deadline has nothing to complain of.
  const bool is_late = outbox_.now() > request.deadline;
  if (event.ending != Ending::kCancelled || is_late) {
    queue_.Count(request, event.ending == Ending::kAnswered && !is_late);
  }
  const bool has_run = !request.is_lost && !node_.IsWaiting(request);
  if (has_run && event.ending == Ending::kAnswered) {
    leases_.LearnRunTime(node_.instances.at(request.instance));
  }
  TakeBack(request.request);
}

void Scheduler::TakeBack(RequestId id) {
  const auto found = node_.requests.find(id);
  if (found == node_.requests.end()) return;
  if (!node_.IsWaiting(found->second)) return leases_.TakeBack(id);
  // Leases::Advance ends a tenancy that is left without a request.
  queue_.Remove(found->second);
  node_.requests.erase(found);
}

void Scheduler::Handle(const SwapInDone& event) {
  Instance& shard = node_.instances.at(event.instance);
  const auto copy = shard.image.copies.find(event.gpu);
  if (copy == shard.image.copies.end() || copy->second.state != Copy::State::kComing) return;
  return event.ok ? OnSwappedIn(shard, event.gpu) : OnSwapInFailed(shard, event.gpu);
}

void Scheduler::OnSwappedIn(Instance& shard, GpuIndex gpu) {
  const bool was_for_load = std::exchange(shard.image.copies.at(gpu).is_for_load, false);
  // Coming there counts as a use: else the image would be the first to leave again.
  if (was_for_load) shard.image.NoteUse(outbox_.now());
  images_.OnPresent(shard, gpu);
  Instance& lead = node_.LeadOf(shard.id);
  if (was_for_load) keep_alives_.Note(lead);
  queue_.Update(lead);
}

void Scheduler::OnSwapInFailed(Instance& shard, GpuIndex gpu) {
  const bool was_for_load = shard.image.copies.at(gpu).is_for_load;
  images_.Drop(shard, gpu);
  Instance& lead = node_.LeadOf(shard.id);
  if (was_for_load) loads_.Refuse(lead, LoadRefusal::kSwapFailed);
  if (cold_starts_.OnSwapInFailed(shard)) return;
  // The image may have come for a lease that was given up, or for a load: only a request that waits
  // for it there is refused.
  const bool is_waited_for = shard.tenancy.phase == Phase::kPlacing && shard.tenancy.gpu == gpu;
  if (!is_waited_for) return;
  if (!lead.waiting.empty()) {
    queue_.Refuse(lead.waiting.begin()->second, Refusal::kSwapFailed);
  }
  leases_.End(lead);
}

void Scheduler::Handle(const ImageArrived& event) {
  const auto gpu = node_.gpus.find(event.gpu);
  if (gpu == node_.gpus.end() || gpu->second.loading != event.instance) return;
  FunctionState& function = node_.functions.at(node_.instances.at(event.instance).function);
  if (!gpu->second.loads_from_disk) {
    function.run_times.transfer.Add(outbox_.now() - gpu->second.loading_since);
  }
  gpu->second.loading = {};
}

void Scheduler::Handle(const SwapOutDone& event) {
  Instance& shard = node_.instances.at(event.instance);
  const auto copy = shard.image.copies.find(event.gpu);
  if (copy == shard.image.copies.end() || copy->second.state != Copy::State::kLeaving) return;
  images_.Drop(shard, event.gpu);
}

void Scheduler::Handle(const WriteBackDone& event) {
  images_.OnWrittenBack(node_.instances.at(event.instance), event.gpu, event.is_clean);
}

void Scheduler::Handle(const LeaseEnded& event) {
  Instance& lead = node_.instances.at(event.instance);
  const Phase phase = lead.tenancy.phase;
  if (phase == Phase::kLeased || phase == Phase::kRevoked) leases_.End(lead);
}

void Scheduler::Handle(const GrowthWanted& event) { growths_.Add(event); }

void Scheduler::Handle(const ImageShrunk& event) {
  Instance& shard = node_.instances.at(event.instance);
  policies_.binding->OnShrunk(shard, std::min(shard.image.bytes, event.bytes));
  images_.Shrink(shard, event.bytes);
}

void Scheduler::Handle(const LoadWanted& event) {
  loads_.Add(node_.instances.at(event.instance), event.gpu);
}

void Scheduler::Handle(const EvictionWanted& event) {
  Instance& lead = node_.instances.at(event.instance);
  if (!lead.tenancy.is_idle()) return;
  loads_.Forget(lead);
  images_.SwapOutAll(lead, SwapOutReason::kRequested);
}

void Scheduler::Handle(const ImagesUnwanted& event) {
  for (const InstanceId id : event.instances) {
    images_.SwapOutFrom(node_.instances.at(id), event.gpu, SwapOutReason::kRequested);
  }
}

void Scheduler::Handle(const PinChanged& event) {
  node_.ForEachShard(node_.instances.at(event.instance), [&](Instance& shard) {
    shard.image.is_pinned = event.is_pinned;
    images_.Rank(shard);
  });
}

void Scheduler::Handle(const ImageSpilled& event) {
  node_.instances.at(event.instance).image.is_on_disk = event.is_on_disk;
}

void Scheduler::Handle(const TimePassed&) {}

}  // namespace torpor::scheduler
