#include <algorithm>
#include <utility>

#include "scheduler/scheduler.h"

// Who gets which GPU.
namespace torpor::scheduler {

void Scheduler::ServeQueue() {
  std::set<GpuIndex> claimed;
  std::set<InstanceId> unserved;
  int passed_over = 0;
  while (queued_ > unserved.size()) {
    const std::vector<GpuIndex> open = OpenGpus(claimed);
    if (open.empty()) return;
    const std::size_t claimed_before = claimed.size();
    bool is_any_new = false;
    // Twice as many each time: together they cost no more than the last.
    const std::size_t count = 2 * unserved.size() + open.size();
    for (const InstanceId id : policies_.queue->First(count, open, node_, now_)) {
      if (unserved.count(id) > 0) continue;
      is_any_new = true;
      Instance& leader = node_.instances.at(id);
      // The order may be another one then.
      if (StepAside(leader) || Serve(leader, claimed)) break;
      unserved.insert(id);
      if (claimed.size() > claimed_before) break;
      if (MayRunOnAny(leader, open) && ++passed_over == kMaxPassedOver) return;
    }
    if (!is_any_new) return;
  }
}

bool Scheduler::IsCold(const Instance& leader) const {
  if (options_.binding != Binding::kWhileResident || !leader.is_alone()) return false;
  return std::none_of(leader.copies.begin(), leader.copies.end(),
                      [](const auto& copy) { return copy.second.state == Copy::State::kPresent; });
}

void Scheduler::StartCold() {
  std::erase_if(cold_, [this](InstanceId id) { return StartCold(node_.instances.at(id)); });
}

bool Scheduler::StartCold(Instance& instance) {
  if (instance.waiting.empty() || !IsCold(instance)) {
    instance.failed_cold_starts = 0;
    return true;
  }
  if (!instance.copies.empty()) return false;
  if (now_ < instance.next_cold_start) {
    WakeAt(instance.next_cold_start);
    return false;
  }
  std::vector<GpuIndex> candidates;
  for (const auto& [id, gpu] : node_.gpus) {
    if (gpu.is_up && gpu.free_bytes() >= instance.image_bytes) candidates.push_back(id);
  }
  if (candidates.empty()) {
    RefuseAllWaiting(instance, Refusal::kNoRoom);
    return true;
  }
  const std::optional<GpuIndex> gpu =
      policies_.placement->Choose(instance, candidates, node_, now_);
  if (gpu) EmitSwapIn(instance, node_.gpus.at(*gpu), std::nullopt);
  return false;
}

void Scheduler::OnColdStartFailed(Instance& instance) {
  constexpr int kMaxTries = 4;
  constexpr Duration kFirstPause = std::chrono::milliseconds(100);
  if (++instance.failed_cold_starts == kMaxTries) {
    instance.failed_cold_starts = 0;
    return RefuseAllWaiting(instance, Refusal::kSwapFailed);
  }
  instance.next_cold_start = now_ + kFirstPause * (1 << (instance.failed_cold_starts - 1));
}

std::vector<GpuIndex> Scheduler::OpenGpus(const std::set<GpuIndex>& claimed) const {
  std::vector<GpuIndex> open;
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.is_up || claimed.count(id) > 0) continue;
    if (gpu.tenant) {
      const Instance& holder = node_.instances.at(node_.instances.at(gpu.tenant).leader);
      const bool may_become_free =
          holder.phase == Instance::Phase::kRevoked ||
          (holder.phase == Instance::Phase::kLeased && holder.lease_is_implicit);
      if (!may_become_free) continue;
    }
    open.push_back(id);
  }
  return open;
}

bool Scheduler::Serve(Instance& leader, std::set<GpuIndex>& claimed) {
  if (IsTooLarge(leader)) {
    RefuseAllWaiting(leader, Refusal::kTooLarge);
    return true;
  }
  if (!MayRunAnywhere(leader)) {
    RefuseAllWaiting(leader, Refusal::kNoRoom);
    return true;
  }
  is_waiting_better_ = false;
  if (Place(leader, claimed)) return true;
  if (is_waiting_better_) {
    NoteChoice(leader);
    LookAgain(leader);
  } else {
    RevokeFor(leader, claimed);
  }
  return false;
}

void Scheduler::EndChoices() {
  for (const InstanceId id : choosing_) {
    Wait& wait = node_.instances.at(id).wait;
    wait.by_choice = wait.by_choice_until(now_);
    wait.chosen_at.reset();
  }
  choosing_.clear();
}

void Scheduler::NoteChoice(Instance& leader) {
  choosing_.insert(leader.id);
  leader.wait.chosen_at = now_;
  for (const auto& [gpu, copy] : leader.copies) {
    if (copy.state == Copy::State::kPresent) leader.wait.awaited = gpu;
  }
}

void Scheduler::LookAgain(const Instance& leader) {
  const TimePoint latest_start = node_.FirstOf(leader).deadline - node_.ExpectedRun(leader);
  WakeAt(now_ + std::max<Duration>((latest_start - now_) / 2, std::chrono::milliseconds(1)));
}

bool Scheduler::Place(Instance& leader, const std::set<GpuIndex>& claimed) {
  const std::vector<Instance*> members = MembersInOrder(leader);
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
  leader.image_source = ImageSource::kResident;
  SetPhase(leader, Instance::Phase::kPlacing);
  policies_.queue->OnServed(leader, node_, now_);
  for (Instance* const member : members) {
    if (member->phase == Instance::Phase::kPlacing) Advance(*member);
  }
  return true;
}

std::vector<Instance*> Scheduler::MembersInOrder(Instance& leader) {
  std::vector<Instance*> members;
  ForEachMember(leader, [&](Instance& member) { members.push_back(&member); });
  std::stable_sort(members.begin(), members.end(), [this](const Instance* a, const Instance* b) {
    if (a->copies.empty() != b->copies.empty()) return b->copies.empty();
    return !options_.evicts && a->image_bytes > b->image_bytes;
  });
  return members;
}

std::optional<GpuIndex> Scheduler::ChooseGpu(const Instance& member,
                                             const std::set<GpuIndex>& taken) {
  std::vector<GpuIndex> candidates;
  for (const auto& [id, gpu] : node_.gpus) {
    const bool is_free = gpu.is_up && !gpu.tenant && taken.count(id) == 0;
    if (is_free && MayRunOn(member, gpu)) candidates.push_back(id);
  }
  if (candidates.empty()) return std::nullopt;
  const std::optional<GpuIndex> chosen =
      policies_.placement->Choose(member, candidates, node_, now_);
  if (!chosen) is_waiting_better_ = true;
  return chosen;
}

bool Scheduler::MayRunOn(const Instance& member, const Gpu& gpu) const {
  if (gpu.capacity < member.image_bytes) return false;
  if (options_.binding == Binding::kEarly && member.image_bytes > 0) {
    return member.bound_gpu == gpu.id;
  }
  if (options_.binding == Binding::kWhileResident && !member.copies.empty()) {
    return member.copies.count(gpu.id) > 0;
  }
  return options_.evicts || member.copies.count(gpu.id) > 0 ||
         gpu.free_later() >= member.image_bytes;
}

bool Scheduler::MayRunOnAny(const Instance& leader, const std::vector<GpuIndex>& gpus) const {
  return std::any_of(gpus.begin(), gpus.end(),
                     [&](GpuIndex gpu) { return MayRunOn(leader, node_.gpus.at(gpu)); });
}

bool Scheduler::MayRunAnywhere(Instance& leader) {
  if (options_.binding == Binding::kLate && options_.evicts) return true;
  std::set<GpuIndex> taken;
  for (const Instance* const member : MembersInOrder(leader)) {
    const auto gpu = std::find_if(node_.gpus.begin(), node_.gpus.end(), [&](const auto& entry) {
      return taken.count(entry.first) == 0 && MayRunOn(*member, entry.second);
    });
    if (gpu == node_.gpus.end()) return false;
    taken.insert(gpu->first);
  }
  return true;
}

void Scheduler::RevokeFor(Instance& leader, std::set<GpuIndex>& claimed) {
  const Request& request = node_.FirstOf(leader);
  ForEachMember(leader, [&](const Instance& member) { ClaimGpu(request, member, claimed); });
}

void Scheduler::ClaimGpu(const Request& request, const Instance& member,
                         std::set<GpuIndex>& claimed) {
  Instance* holder = nullptr;
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.is_up || !MayRunOn(member, gpu) || claimed.count(id)) continue;
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
  LeaderOf(member.id).wait.has_revoked = true;
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

void Scheduler::ServeTenants() {
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.tenant) continue;
    Instance& leader = LeaderOf(gpu.tenant);
    if (leader.phase != Instance::Phase::kLeased) continue;
    while (!leader.waiting.empty() && Join(leader)) {
    }
    if (!leader.lease_is_implicit) continue;
    for (const auto& [turn, request] : leader.waiting) {
      if (!MayRevoke(node_.requests.at(request), leader)) continue;
      EmitRevoke(leader);
      break;
    }
  }
}

bool Scheduler::Join(Instance& leader) {
  if (leader.phase != Instance::Phase::kLeased || leader.lease_is_implicit ||
      leader.in_flight.size() >= static_cast<std::size_t>(leader.max_in_flight)) {
    return false;
  }
  if (StepAside(leader)) return true;
  const Request request = node_.FirstOf(leader);
  if (request.is_implicit) return false;
  // Joining while others wait for a GPU could keep the lease for ever.
  const std::vector<InstanceId> blocked = policies_.queue->First(1, {}, node_, now_);
  if (!blocked.empty() &&
      !policies_.queue->IsBefore(leader, node_.instances.at(blocked.front()), node_, now_)) {
    return false;
  }
  Unqueue(request);
  leader.in_flight.insert(request.request);
  leader.run_since.reset();
  policies_.queue->OnJoined(leader, node_, now_);
  actions_.emplace_back(scheduler::Grant{request.request, leader.id, leader.gpu, true, {}});
  return true;
}

}  // namespace torpor::scheduler
