#include "scheduler/scheduler.h"

#include <algorithm>
#include <utility>

namespace torpor::scheduler {

Scheduler::Scheduler(Policies policies, Options options)
    : policies_(std::move(policies)), options_(options) {}

Actions Scheduler::OnEvent(const Event& event, TimePoint now) {
  now_ = std::max(now_, now);
  if (wake_up_ && *wake_up_ <= now_) wake_up_.reset();
  actions_.clear();
  std::visit([this](const auto& e) { Handle(e); }, event);
  RetryGrowths();
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.tenant) continue;
    Instance& tenant = node_.instances.at(gpu.tenant);
    if (tenant.phase == Instance::Phase::kPlacing) Advance(tenant);
  }
  ServeQueue();
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
}

void Scheduler::Handle(const ExecutorDown& event) {
  const auto gpu = node_.gpus.find(event.gpu);
  if (gpu == node_.gpus.end()) return;
  gpu->second.is_up = false;
  for (auto& [id, instance] : node_.instances) {
    Drop(instance, event.gpu);
    if (instance.phase == Instance::Phase::kIdle || instance.gpu != event.gpu) continue;
    EndTenancy(LeaderOf(id));
  }
}

void Scheduler::Handle(const InstanceAdded& event) {
  Instance& instance = node_.instances[event.instance];
  instance.id = event.instance;
  instance.leader = event.instance;
  instance.companions = event.companions;
  instance.max_in_flight = event.max_in_flight;
  for (const InstanceId id : event.companions) {
    Instance& companion = node_.instances[id];
    companion.id = id;
    companion.leader = event.instance;
  }
}

void Scheduler::Handle(const RequestArrived& event) {
  node_.waiting[event.request] = Request{.request = event.request,
                                         .instance = event.instance,
                                         .arrival = now_,
                                         .deadline = event.deadline,
                                         .is_implicit = event.is_implicit,
                                         .sequence = next_sequence_++};
}

void Scheduler::Handle(const RequestGone& event) {
  // A tenant that is left with nobody to run for is noticed by Advance.
  if (node_.waiting.erase(event.request) > 0) return;
  for (auto& [id, instance] : node_.instances) {
    if (instance.in_flight.erase(event.request) == 0) continue;
    if (instance.in_flight.empty()) EmitRevoke(instance);
    return;
  }
}

void Scheduler::Handle(const SwapInDone& event) {
  Instance& instance = node_.instances.at(event.instance);
  const auto copy = instance.copies.find(event.gpu);
  if (copy == instance.copies.end() || copy->second.state != Copy::State::kComing) return;
  if (event.ok) {
    copy->second.state = Copy::State::kPresent;
    return;
  }
  Drop(instance, event.gpu);
  // Only a request that waits for it there: the image of a companion may have come for a lease that
  // was given up, another for a load.
  if (instance.phase != Instance::Phase::kPlacing || instance.gpu != event.gpu) return;
  if (const Request* request = FirstWaiting(instance.leader)) {
    actions_.emplace_back(Refuse{request->request, Refusal::kSwapFailed});
    node_.waiting.erase(request->request);
  }
  EndTenancy(LeaderOf(instance.id));
}

void Scheduler::Handle(const SwapOutDone& event) {
  Instance& instance = node_.instances.at(event.instance);
  const auto copy = instance.copies.find(event.gpu);
  if (copy == instance.copies.end() || copy->second.state != Copy::State::kLeaving) return;
  Drop(instance, event.gpu);
}

void Scheduler::Handle(const LeaseEnded& event) {
  Instance& instance = node_.instances.at(event.instance);
  if (instance.phase == Instance::Phase::kLeased || instance.phase == Instance::Phase::kRevoked) {
    EndTenancy(instance);
  }
}

void Scheduler::Handle(const GrowthWanted& event) {
  growths_.push_back({event.growth, event.instance, event.bytes});
}

void Scheduler::Handle(const ImageShrunk& event) {
  Instance& instance = node_.instances.at(event.instance);
  instance.image_bytes -= std::min(instance.image_bytes, event.bytes);
  for (auto& [gpu, copy] : instance.copies) {
    // What leaves may be as large as it was until it has left.
    if (copy.state == Copy::State::kLeaving) continue;
    const Bytes bytes = std::min(copy.bytes, event.bytes);
    copy.bytes -= bytes;
    node_.gpus.at(gpu).used -= bytes;
  }
}

void Scheduler::Handle(const TimePassed&) {}

void Scheduler::ServeQueue() {
  std::set<GpuIndex> claimed;
  bool is_somebody_blocked = false;
  for (const RequestId id : policies_.queue->Order(node_, now_)) {
    const auto waiting = node_.waiting.find(id);
    if (waiting == node_.waiting.end()) continue;
    const Request request = waiting->second;
    Instance& instance = node_.instances.at(request.instance);
    if (RefuseIfTooLarge(request, instance)) continue;
    if (instance.phase != Instance::Phase::kIdle) {
      // Joining while others wait for a GPU could keep the lease for ever.
      if (!is_somebody_blocked && Join(request, instance)) continue;
      if (MayRevoke(request, instance)) EmitRevoke(instance);
      continue;
    }
    if (Place(instance, claimed)) continue;
    is_somebody_blocked = true;
    RevokeFor(request, instance, claimed);
  }
}

bool Scheduler::RefuseIfTooLarge(const Request& request, const Instance& instance) {
  const Bytes largest = LargestCapacity();
  const std::vector<Instance*> members = MembersOf(instance);
  const bool fits = std::all_of(members.begin(), members.end(), [&](const Instance* member) {
    return member->image_bytes <= largest;
  });
  if (largest == 0 || fits) return false;
  actions_.emplace_back(Refuse{request.request, Refusal::kTooLarge});
  node_.waiting.erase(request.request);
  return true;
}

std::vector<Instance*> Scheduler::MembersOf(const Instance& leader) {
  std::vector<Instance*> members{&node_.instances.at(leader.id)};
  for (const InstanceId id : leader.companions) members.push_back(&node_.instances.at(id));
  return members;
}

Instance& Scheduler::LeaderOf(InstanceId member) {
  return node_.instances.at(node_.instances.at(member).leader);
}

void Scheduler::SetPhase(const Instance& leader, Instance::Phase phase) {
  for (Instance* const member : MembersOf(leader)) member->phase = phase;
}

bool Scheduler::Place(Instance& leader, const std::set<GpuIndex>& claimed) {
  std::vector<Instance*> members = MembersOf(leader);
  // Who is on a GPU already is not driven from it by one who may go to any.
  std::stable_partition(members.begin(), members.end(),
                        [](const Instance* member) { return !member->copies.empty(); });
  std::vector<GpuIndex> chosen;
  std::set<GpuIndex> taken = claimed;
  for (const Instance* const member : members) {
    const std::optional<GpuIndex> gpu = ChooseGpu(*member, taken);
    if (!gpu) return false;
    chosen.push_back(*gpu);
    taken.insert(*gpu);
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    node_.gpus.at(chosen[i]).tenant = members[i]->id;
    members[i]->gpu = chosen[i];
  }
  SetPhase(leader, Instance::Phase::kPlacing);
  for (Instance* const member : members) {
    if (member->phase == Instance::Phase::kPlacing) Advance(*member);
  }
  return true;
}

std::optional<GpuIndex> Scheduler::ChooseGpu(const Instance& member,
                                             const std::set<GpuIndex>& taken) {
  std::vector<GpuIndex> candidates;
  for (const auto& [id, gpu] : node_.gpus) {
    const bool is_free = gpu.is_up && !gpu.tenant && taken.count(id) == 0;
    if (is_free && gpu.capacity >= member.image_bytes) candidates.push_back(id);
  }
  if (candidates.empty()) return std::nullopt;
  return policies_.placement->Choose(member, candidates, node_, now_);
}

bool Scheduler::Join(const Request& request, Instance& instance) {
  if (request.is_implicit || instance.phase != Instance::Phase::kLeased ||
      instance.lease_is_implicit ||
      instance.in_flight.size() >= static_cast<std::size_t>(instance.max_in_flight)) {
    return false;
  }
  instance.in_flight.insert(request.request);
  actions_.emplace_back(Grant{request.request, instance.id, instance.gpu, true, {}});
  node_.waiting.erase(request.request);
  return true;
}

void Scheduler::RevokeFor(const Request& request, const Instance& leader,
                          std::set<GpuIndex>& claimed) {
  for (const Instance* const member : MembersOf(leader)) ClaimGpu(request, *member, claimed);
}

void Scheduler::ClaimGpu(const Request& request, const Instance& member,
                         std::set<GpuIndex>& claimed) {
  Instance* holder = nullptr;
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.is_up || gpu.capacity < member.image_bytes || claimed.count(id)) continue;
    // Free, but not as many as the instance needs: kept for it, or it would wait for ever.
    const bool is_free_soon =
        !gpu.tenant || node_.instances.at(gpu.tenant).phase == Instance::Phase::kRevoked;
    if (is_free_soon) {
      claimed.insert(id);
      return;
    }
    const bool is_better =
        !holder || (member.copies.count(id) && !member.copies.count(holder->gpu));
    if (is_better && MayRevoke(request, LeaderOf(gpu.tenant))) {
      holder = &node_.instances.at(gpu.tenant);
    }
  }
  if (!holder) return;
  claimed.insert(holder->gpu);
  EmitRevoke(LeaderOf(holder->id));
}

bool Scheduler::MayRevoke(const Request& request, const Instance& holder) {
  if (holder.phase != Instance::Phase::kLeased || !holder.lease_is_implicit) return false;
  const TimePoint from =
      holder.leased_at +
      (request.is_implicit ? options_.implicit_quantum : options_.implicit_quantum_for_request);
  if (now_ >= from) return true;
  WakeAt(from);
  return false;
}

void Scheduler::WakeAt(TimePoint when) {
  if (wake_up_ && *wake_up_ <= when) return;
  wake_up_ = when;
  actions_.emplace_back(WakeUp{when});
}

void Scheduler::EmitRevoke(Instance& instance) {
  if (instance.phase != Instance::Phase::kLeased) return;
  SetPhase(instance, Instance::Phase::kRevoked);
  actions_.emplace_back(Revoke{instance.id});
}

void Scheduler::Advance(Instance& member) {
  Instance& leader = LeaderOf(member.id);
  const auto copy = member.copies.find(member.gpu);
  const bool is_coming = copy != member.copies.end() && copy->second.state == Copy::State::kComing;
  if (is_coming) return;
  if (!FirstWaiting(leader.id)) return EndTenancy(leader);
  if (IsPresent(member)) {
    const std::vector<Instance*> members = MembersOf(leader);
    const bool is_complete =
        std::all_of(members.begin(), members.end(),
                    [this](const Instance* other) { return IsPresent(*other); });
    return is_complete ? GrantFirstWaiting(leader) : void();
  }
  Bring(member, node_.gpus.at(member.gpu));
}

bool Scheduler::Bring(Instance& member, Gpu& gpu) {
  // Room is made while the image still leaves another GPU.
  const bool has_room = MakeRoom(gpu, member.image_bytes);
  // Where the room depends on another that waits, too, it is given up, or both would for ever.
  const bool will_have_room = FreeLater(gpu) >= member.image_bytes;
  const std::optional<GpuIndex> source = will_have_room ? SourceOf(member, gpu) : std::nullopt;
  for (auto& [at, other] : member.copies) {
    if (other.state == Copy::State::kPresent && at != source) {
      EmitSwapOut(member, at, SwapOutReason::kMove);
    }
  }
  if (!has_room || member.copies.size() > (source ? 1 : 0)) return false;
  if (source) member.copies.at(*source).state = Copy::State::kLeaving;
  member.copies[gpu.id] = Copy{};
  Charge(member, gpu.id, member.image_bytes);
  actions_.emplace_back(SwapIn{member.id, gpu.id, source});
  return true;
}

std::optional<GpuIndex> Scheduler::SourceOf(const Instance& member, const Gpu& gpu) const {
  if (!member.is_alone()) return std::nullopt;
  for (const GpuIndex source : gpu.sources) {
    const auto copy = member.copies.find(source);
    const bool is_there =
        copy != member.copies.end() && copy->second.state == Copy::State::kPresent;
    if (is_there) return source;
  }
  return std::nullopt;
}

bool Scheduler::IsPresent(const Instance& member) const {
  const auto copy = member.copies.find(member.gpu);
  return copy != member.copies.end() && copy->second.state == Copy::State::kPresent;
}

void Scheduler::GrantFirstWaiting(Instance& leader) {
  const Request request = *FirstWaiting(leader.id);
  node_.waiting.erase(request.request);
  SetPhase(leader, Instance::Phase::kLeased);
  leader.lease_is_implicit = request.is_implicit;
  leader.leased_at = now_;
  leader.in_flight = {request.request};
  Grant grant{request.request, leader.id, leader.gpu, false, {}};
  for (Instance* const member : MembersOf(leader)) {
    member->last_used = now_;
    Copy& copy = member->copies.at(member->gpu);
    copy.is_unsaved = true;
    copy.is_saving = false;  // what is written back meanwhile is not all that will be
    if (member != &leader) grant.companion_gpus.push_back(member->gpu);
  }
  actions_.emplace_back(std::move(grant));
}

const Request* Scheduler::FirstWaiting(InstanceId instance) {
  for (const RequestId id : policies_.queue->Order(node_, now_)) {
    const Request& request = node_.waiting.at(id);
    if (request.instance == instance) return &request;
  }
  return nullptr;
}

void Scheduler::EndTenancy(Instance& leader) {
  leader.in_flight.clear();
  for (Instance* const member : MembersOf(leader)) {
    node_.gpus.at(member->gpu).tenant = {};
    member->phase = Instance::Phase::kIdle;
    member->last_used = now_;
  }
}

bool Scheduler::MakeRoom(Gpu& gpu, Bytes bytes) {
  if (gpu.free_bytes() >= bytes) return true;
  Bytes free_later = FreeLater(gpu);
  std::vector<InstanceId> candidates;
  for (const auto& [id, instance] : node_.instances) {
    const auto copy = instance.copies.find(gpu.id);
    if (copy == instance.copies.end() || copy->second.bytes == 0) continue;
    const bool is_idle = instance.phase == Instance::Phase::kIdle;
    if (copy->second.state == Copy::State::kPresent && is_idle) candidates.push_back(id);
  }
  if (free_later >= bytes) return false;
  std::vector<InstanceId> victims =
      policies_.eviction->Order(gpu.id, std::move(candidates), node_, now_);
  std::stable_partition(victims.begin(), victims.end(),
                        [this](InstanceId id) { return !node_.instances.at(id).is_pinned; });
  for (const InstanceId id : victims) {
    if (free_later >= bytes) break;
    Instance& victim = node_.instances.at(id);
    free_later += victim.copies.at(gpu.id).bytes;
    EmitSwapOut(victim, gpu.id, SwapOutReason::kMemoryFull);
  }
  return false;
}

Bytes Scheduler::FreeLater(const Gpu& gpu) const {
  Bytes free_later = gpu.free_bytes();
  for (const auto& [id, instance] : node_.instances) {
    const auto copy = instance.copies.find(gpu.id);
    const bool is_leaving =
        copy != instance.copies.end() && copy->second.state == Copy::State::kLeaving;
    if (is_leaving) free_later += copy->second.bytes;
  }
  return free_later;
}

void Scheduler::EmitSwapOut(Instance& instance, GpuIndex gpu, SwapOutReason reason) {
  instance.copies.at(gpu).state = Copy::State::kLeaving;
  actions_.emplace_back(SwapOut{instance.id, gpu, reason});
}

void Scheduler::Drop(Instance& instance, GpuIndex gpu) {
  const auto copy = instance.copies.find(gpu);
  if (copy == instance.copies.end()) return;
  node_.gpus.at(gpu).used -= copy->second.bytes;
  instance.copies.erase(copy);
}

void Scheduler::Charge(Instance& instance, GpuIndex gpu, Bytes bytes) {
  instance.copies.at(gpu).bytes += bytes;
  node_.gpus.at(gpu).used += bytes;
}

void Scheduler::RetryGrowths() {
  std::erase_if(growths_, [this](const Growth& growth) { return TryGrow(growth); });
}

bool Scheduler::TryGrow(const Growth& growth) {
  Instance& instance = node_.instances.at(growth.instance);
  const bool is_tenant = instance.phase != Instance::Phase::kIdle;
  const Bytes limit = is_tenant ? node_.gpus.at(instance.gpu).capacity : LargestCapacity();
  if (instance.image_bytes + growth.bytes > limit) {
    actions_.emplace_back(RefuseGrowth{growth.id});
    return true;
  }
  for (auto& [gpu, copy] : instance.copies) {
    if (copy.state == Copy::State::kLeaving) continue;
    const bool has_room = instance.image_bytes + growth.bytes <= node_.gpus.at(gpu).capacity;
    const bool is_needed = (is_tenant && gpu == instance.gpu) || (instance.is_pinned && has_room);
    if (is_needed && !MakeRoom(node_.gpus.at(gpu), growth.bytes)) return false;
    // A copy that nobody runs on or has pinned is not worth another's eviction: it comes back when
    // it is needed.
    if (!is_needed && node_.gpus.at(gpu).free_bytes() < growth.bytes) {
      if (copy.state == Copy::State::kComing) return false;
      EmitSwapOut(instance, gpu, SwapOutReason::kMemoryFull);
    }
  }
  instance.image_bytes += growth.bytes;
  for (auto& [gpu, copy] : instance.copies) {
    if (copy.state != Copy::State::kLeaving) Charge(instance, gpu, growth.bytes);
  }
  actions_.emplace_back(AllowGrowth{growth.id});
  return true;
}

Bytes Scheduler::LargestCapacity() const {
  Bytes largest = 0;
  for (const auto& [id, gpu] : node_.gpus) largest = std::max(largest, gpu.capacity);
  return largest;
}

}  // namespace torpor::scheduler
