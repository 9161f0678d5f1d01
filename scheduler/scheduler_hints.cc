#include "scheduler/scheduler.h"

// What an administrator asks for.
namespace torpor::scheduler {

void Scheduler::Handle(const LoadWanted& event) {
  ForEachMember(node_.instances.at(event.instance), [&](Instance& member) {
    member.is_load_wanted = true;
    member.load_gpu = event.gpu;
    wanted_loads_.insert(member.id);
  });
}

void Scheduler::Handle(const EvictionWanted& event) {
  Instance& leader = node_.instances.at(event.instance);
  if (leader.phase != Instance::Phase::kIdle) return;
  ForEachMember(leader, [&](Instance& member) {
    member.is_load_wanted = false;
    wanted_loads_.erase(member.id);
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
  std::erase_if(wanted_loads_, [this](InstanceId id) {
    Instance& instance = node_.instances.at(id);
    if (!Load(instance)) return false;
    instance.is_load_wanted = false;
    return true;
  });
}

bool Scheduler::Load(Instance& member) {
  if (member.phase != Instance::Phase::kIdle) return true;
  member.load_gpu = ChooseLoadGpu(member);
  if (!member.load_gpu) return true;
  Gpu& gpu = node_.gpus.at(*member.load_gpu);
  // The room that is being made there is a request's.
  if (gpu.tenant && node_.instances.at(gpu.tenant).phase == Instance::Phase::kPlacing) return false;
  for (auto& [at, copy] : member.copies) {
    if (at == gpu.id && copy.state != Copy::State::kLeaving) return true;
  }
  return Bring(member, gpu);
}

std::optional<GpuIndex> Scheduler::ChooseLoadGpu(const Instance& member) {
  std::set<GpuIndex> taken;
  ForEachMember(LeaderOf(member.id), [&](const Instance& other) {
    if (other.id == member.id) return;
    for (const auto& [id, copy] : other.copies) taken.insert(id);
    if (other.is_load_wanted && other.load_gpu) taken.insert(*other.load_gpu);
  });
  std::vector<GpuIndex> candidates;
  for (const auto& [id, gpu] : node_.gpus) {
    const bool is_wanted = !member.load_gpu || *member.load_gpu == id;
    if (gpu.is_up && is_wanted && taken.count(id) == 0 && gpu.capacity >= member.image_bytes) {
      candidates.push_back(id);
    }
  }
  if (candidates.empty()) return std::nullopt;
  return policies_.placement->Choose(member, candidates, node_, now_);
}

}  // namespace torpor::scheduler
