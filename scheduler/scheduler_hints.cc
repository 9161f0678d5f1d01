#include <algorithm>
#include <utility>

#include "scheduler/scheduler.h"

// What an administrator asks for.
namespace torpor::scheduler {

void Scheduler::Handle(const LoadWanted& event) {
  Instance& leader = node_.instances.at(event.instance);
  ForEachMember(leader, [&](Instance& member) {
    member.is_load_wanted = true;
    member.wanted_gpu = event.gpu;
    member.load_gpu.reset();
  });
  wanted_loads_.insert(leader.id);
}

void Scheduler::Handle(const EvictionWanted& event) {
  Instance& leader = node_.instances.at(event.instance);
  if (leader.phase != Instance::Phase::kIdle) return;
  ForgetLoad(leader);
  ForEachMember(leader, [&](Instance& member) {
    for (const auto& [gpu, copy] : member.copies) {
      const bool may_go = copy.state == Copy::State::kPresent && copy.readers == 0;
      if (may_go) EmitSwapOut(member, gpu, SwapOutReason::kRequested);
    }
  });
}

void Scheduler::Handle(const PinChanged& event) {
  ForEachMember(node_.instances.at(event.instance), [&](Instance& member) {
    member.is_pinned = event.is_pinned;
    Rank(member);
  });
}

void Scheduler::ServeLoads() {
  for (auto wanted = wanted_loads_.begin(); wanted != wanted_loads_.end();) {
    Instance& leader = node_.instances.at(*wanted++);
    if (Load(leader)) ForgetLoad(leader);
  }
}

void Scheduler::ForgetLoad(Instance& leader) {
  wanted_loads_.erase(leader.id);
  ForEachMember(leader, [](Instance& member) { member.is_load_wanted = false; });
}

void Scheduler::EmitRefuseLoad(Instance& leader, LoadRefusal reason) {
  ForgetLoad(leader);
  actions_.emplace_back(RefuseLoad{leader.id, reason});
}

bool Scheduler::Load(Instance& leader) {
  if (const std::optional<LoadRefusal> reason = ReasonNotToLoad(leader)) {
    EmitRefuseLoad(leader, *reason);
    return true;
  }
  if (leader.phase != Instance::Phase::kIdle) return true;
  if (!ChooseLoadGpus(leader)) return false;
  bool is_sent_for = true;
  ForEachMember(leader, [&](Instance& member) { is_sent_for = LoadMember(member) && is_sent_for; });
  return is_sent_for;
}

std::optional<LoadRefusal> Scheduler::ReasonNotToLoad(const Instance& leader) const {
  if (leader.phase != Instance::Phase::kIdle) {
    const bool is_elsewhere = leader.wanted_gpu && *leader.wanted_gpu != leader.gpu;
    return is_elsewhere ? std::optional(LoadRefusal::kInUse) : std::nullopt;
  }
  std::vector<const Gpu*> gpus;
  Bytes largest = 0;
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.is_up || (leader.wanted_gpu && *leader.wanted_gpu != id)) continue;
    gpus.push_back(&gpu);
    largest = std::max(largest, gpu.capacity);
  }
  if (gpus.empty()) return LoadRefusal::kNoGpu;
  if (gpus.size() <= leader.companions.size()) return LoadRefusal::kTooFewGpus;
  std::optional<LoadRefusal> reason;
  const auto check = [&](const Instance& member) {
    const bool may_run = std::any_of(gpus.begin(), gpus.end(),
                                     [&](const Gpu* gpu) { return MayRunOn(member, *gpu); });
    if (may_run || reason) return;
    reason = member.image_bytes > largest ? LoadRefusal::kTooLarge : LoadRefusal::kNoRoom;
  };
  check(leader);
  for (const InstanceId id : leader.companions) check(node_.instances.at(id));
  return reason;
}

bool Scheduler::ChooseLoadGpus(Instance& leader) {
  std::set<GpuIndex> taken;
  std::vector<std::pair<Instance*, GpuIndex>> chosen;
  bool is_decided = true;
  // Its other members stay where they are.
  ForEachMember(leader, [&](const Instance& member) {
    if (member.load_gpu && node_.gpus.at(*member.load_gpu).is_up) taken.insert(*member.load_gpu);
  });
  ForEachMember(leader, [&](Instance& member) {
    if (!is_decided) return;
    if (member.load_gpu && node_.gpus.at(*member.load_gpu).is_up) return;
    std::set<GpuIndex> others = taken;
    ForEachMember(leader, [&](const Instance& other) {
      if (other.id == member.id) return;
      for (const auto& [id, copy] : other.copies) others.insert(id);
    });
    const std::optional<GpuIndex> gpu = ChooseLoadGpu(member, others);
    is_decided = gpu.has_value();
    if (!gpu) return;
    taken.insert(*gpu);
    chosen.emplace_back(&member, *gpu);
  });
  // Half of it is of no use.
  if (!is_decided) return false;
  for (const auto& [member, gpu] : chosen) member->load_gpu = gpu;
  return true;
}

std::optional<GpuIndex> Scheduler::ChooseLoadGpu(const Instance& member,
                                                 const std::set<GpuIndex>& taken) {
  std::vector<GpuIndex> candidates;
  for (const auto& [id, gpu] : node_.gpus) {
    const bool is_wanted = !member.wanted_gpu || *member.wanted_gpu == id;
    const bool may_be = gpu.is_up && is_wanted && taken.count(id) == 0 && MayRunOn(member, gpu);
    if (may_be && HasRoomToLoad(member, gpu)) candidates.push_back(id);
  }
  if (candidates.empty()) return std::nullopt;
  return policies_.placement->Choose(member, candidates, node_, now_);
}

bool Scheduler::HasRoomToLoad(const Instance& member, const Gpu& gpu) const {
  const auto copy = member.copies.find(gpu.id);
  if (copy != member.copies.end() && copy->second.state != Copy::State::kLeaving) return true;
  // The room that is being made there is a request's.
  const bool is_placing =
      gpu.tenant && node_.instances.at(gpu.tenant).phase == Instance::Phase::kPlacing;
  if (is_placing) return false;
  Bytes room = gpu.free_later();
  if (!options_.evicts) return room >= member.image_bytes;
  for (auto victim = gpu.evictable.begin();
       victim != gpu.evictable.end() && room < member.image_bytes; ++victim) {
    room += node_.instances.at(victim->second).copies.at(gpu.id).bytes;
  }
  return room >= member.image_bytes;
}

bool Scheduler::LoadMember(Instance& member) {
  if (!member.is_load_wanted) return true;
  Gpu& gpu = node_.gpus.at(*member.load_gpu);
  const auto copy = member.copies.find(gpu.id);
  if (copy != member.copies.end() && copy->second.state != Copy::State::kLeaving) {
    NoteUse(member);
    Rank(member);
    NoteKeepAlive(LeaderOf(member.id));
  } else if (HasRoomToLoad(member, gpu) && Bring(member, gpu)) {
    member.copies.at(gpu.id).is_for_load = true;
  } else {
    return false;
  }
  member.is_load_wanted = false;
  return true;
}

}  // namespace torpor::scheduler
