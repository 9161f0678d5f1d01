#include "scheduler/scheduler.h"

#include <algorithm>
#include <cmath>
#include <utility>

// Instances and their tenancies: from the choice of a GPU to the end of the lease on it.
namespace torpor::scheduler {

Scheduler::Scheduler(Policies policies, Options options)
    : policies_(std::move(policies)), options_(options) {}

Actions Scheduler::OnEvent(const Event& event, TimePoint now) {
  now_ = std::max(now_, now);
  if (wake_up_ && *wake_up_ <= now_) wake_up_.reset();
  actions_.clear();
  std::visit([this](const auto& e) { Handle(e); }, event);
  ForgetOutcomes();
  EndKeepAlives();
  RetryGrowths();
  StartCold();
  AdvanceTenants();
  EndChoices();
  ServeQueue();
  ServeTenants();
  ServeLoads();
  SaveIdleImages();
  return std::exchange(actions_, {});
}

void Scheduler::Handle(const ExecutorUp& event) {
  Handle(ExecutorDown{event.gpu});
  Gpu& gpu = node_.gpus[event.gpu];
  gpu.id = event.gpu;
  gpu.is_up = true;
  gpu.capacity = event.capacity;
  gpu.sources = event.sources;
  gpu.pcie_switch = event.pcie_switch;
  for (const InstanceId id : policies_.queue->First(queued_, {}, node_, now_)) {
    Instance& instance = node_.instances.at(id);
    if (IsTooLarge(instance)) RefuseAllWaiting(instance, Refusal::kTooLarge);
  }
}

void Scheduler::Handle(const ExecutorDown& event) {
  const auto gpu = node_.gpus.find(event.gpu);
  if (gpu == node_.gpus.end()) return;
  gpu->second.is_up = false;
  std::set<InstanceId> lost;
  for (const auto& [id, instance] : node_.instances) {
    if (instance.copies.count(event.gpu) > 0) lost.insert(id);
  }
  for (const InstanceId id : lost) {
    Instance& instance = node_.instances.at(id);
    const bool was_for_load = instance.copies.at(event.gpu).is_for_load;
    Drop(instance, event.gpu);
    if (was_for_load) EmitRefuseLoad(LeaderOf(id), LoadRefusal::kSwapFailed);
  }
  if (gpu->second.tenant) EndTenancy(LeaderOf(gpu->second.tenant));
}

void Scheduler::Handle(const TenantSet& event) {
  node_.tenants[event.tenant].weight = event.weight;
}

void Scheduler::Handle(const FunctionSet& event) {
  Function& function = node_.functions[event.function];
  function.id = event.function;
  // Who waits stands in the queue as a function of before: it leaves, and comes again.
  std::vector<Instance*> queued;
  for (const InstanceId id : function.instances) {
    Instance& instance = node_.instances.at(id);
    if (instance.queued_as) queued.push_back(&instance);
  }
  for (const Instance* const instance : queued) policies_.queue->Remove(*instance, node_, now_);
  policies_.queue->Forget(function);
  if (function.objective != event.objective) function.recent.Clear();
  function.tenant = event.tenant;
  function.objective = event.objective;
  function.priority = event.priority;
  function.max_waiting = event.max_waiting;
  function.keep_alive = event.keep_alive;
  for (const InstanceId id : function.instances) NoteKeepAlive(node_.instances.at(id));
  policies_.queue->OnOutcome(function, std::nullopt, now_);
  for (const Instance* const instance : queued) policies_.queue->Add(*instance, node_, now_);
}

void Scheduler::Handle(const InstanceAdded& event) {
  Instance& instance = node_.instances[event.instance];
  instance.id = event.instance;
  instance.function = event.function ? event.function : FunctionId{event.instance.value};
  instance.leader = event.instance;
  instance.companions = event.companions;
  instance.max_in_flight = event.max_in_flight;
  instance.keeps_replicas = event.keeps_replicas;
  for (const InstanceId id : event.companions) {
    Instance& companion = node_.instances[id];
    companion.id = id;
    companion.function = instance.function;
    companion.leader = event.instance;
  }
  Function& function = node_.functions[instance.function];
  function.id = instance.function;
  function.instances.push_back(instance.id);
}

void Scheduler::Handle(const LeaseEnded& event) {
  Instance& instance = node_.instances.at(event.instance);
  if (instance.phase == Instance::Phase::kLeased || instance.phase == Instance::Phase::kRevoked) {
    EndTenancy(instance);
  }
}

void Scheduler::Handle(const TimePassed&) {}

Instance& Scheduler::LeaderOf(InstanceId member) {
  return node_.instances.at(node_.instances.at(member).leader);
}

void Scheduler::SetPhase(Instance& leader, Instance::Phase phase) {
  ForEachMember(leader, [&](Instance& member) {
    member.phase = phase;
    Rank(member);
  });
  UpdateQueue(leader);
}

void Scheduler::AdvanceTenants() {
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.tenant) continue;
    Instance& tenant = node_.instances.at(gpu.tenant);
    if (tenant.phase == Instance::Phase::kPlacing) Advance(tenant);
  }
}

void Scheduler::Advance(Instance& member) {
  Instance& leader = LeaderOf(member.id);
  const auto copy = member.copies.find(member.gpu);
  const bool is_coming = copy != member.copies.end() && copy->second.state == Copy::State::kComing;
  if (is_coming) return;
  if (leader.waiting.empty()) return EndTenancy(leader);
  if (!member.is_present_on(member.gpu)) {
    Gpu& gpu = node_.gpus.at(member.gpu);
    // Another's image has taken the room meanwhile, and none is made.
    const bool has_no_room = !options_.evicts && gpu.free_later() < member.image_bytes;
    if (has_no_room) return EndTenancy(leader);
    Bring(member, gpu);
  } else if (IsComplete(leader)) {
    Grant(leader);
  }
}

bool Scheduler::IsComplete(Instance& leader) {
  bool is_complete = true;
  ForEachMember(leader, [&](const Instance& member) {
    is_complete = is_complete && member.is_present_on(member.gpu);
  });
  return is_complete;
}

void Scheduler::Grant(Instance& leader) {
  const Request request = node_.FirstOf(leader);
  Unqueue(request);
  SetPhase(leader, Instance::Phase::kLeased);
  leader.lease_is_implicit = request.is_implicit;
  leader.leased_at = now_;
  if (leader.image_source == ImageSource::kResident) leader.run_since = now_;
  if (request.is_implicit) leader.run_since.reset();
  leader.in_flight = {request.request};
  scheduler::Grant grant{request.request, leader.id, leader.gpu, false, {}};
  ForEachMember(leader, [&](Instance& member) {
    NoteUse(member);
    Copy& copy = member.copies.at(member.gpu);
    copy.is_unsaved = !member.keeps_replicas;
    // What is written back meanwhile is not all that will be.
    if (std::exchange(copy.is_saving, false)) --node_.gpus.at(member.gpu).saves;
    if (&member != &leader) grant.companion_gpus.push_back(member.gpu);
  });
  actions_.emplace_back(std::move(grant));
}

void Scheduler::NoteUse(Instance& member) {
  member.last_used = now_;
  // log(e^old + e^now) without an overflow.
  const double now = ToSeconds(now_.time_since_epoch()) / ToSeconds(kUseDecay);
  const double larger = std::max(member.log_use, now);
  member.log_use = larger + std::log(std::exp(member.log_use - larger) + std::exp(now - larger));
}

void Scheduler::EndTenancy(Instance& leader) {
  for (const RequestId request : leader.in_flight) {
    // Nobody says what becomes of an implicit one.
    if (leader.lease_is_implicit) {
      node_.requests.erase(request);
    } else {
      node_.requests.at(request).is_lost = true;
    }
  }
  leader.in_flight.clear();
  ForEachMember(leader, [&](Instance& member) {
    Gpu& gpu = node_.gpus.at(member.gpu);
    gpu.tenant = {};
    gpu.free_since = now_;
    if (gpu.loading == member.id) gpu.loading = {};
    member.last_used = now_;
  });
  policies_.queue->OnReleased(leader, node_, now_);
  const bool had_lease = leader.phase != Instance::Phase::kPlacing;
  NoteKeepAlive(leader);
  SetPhase(leader, Instance::Phase::kIdle);
  if (had_lease && leader.waiting.empty()) TakeFromSibling(leader);
}

void Scheduler::EmitRevoke(Instance& instance) {
  if (instance.phase != Instance::Phase::kLeased) return;
  SetPhase(instance, Instance::Phase::kRevoked);
  actions_.emplace_back(Revoke{instance.id});
}

void Scheduler::WakeAt(TimePoint when) {
  if (wake_up_ && *wake_up_ <= when) return;
  wake_up_ = when;
  actions_.emplace_back(WakeUp{when});
}

}  // namespace torpor::scheduler
