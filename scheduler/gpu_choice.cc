#include "scheduler/gpu_choice.h"

#include <algorithm>

namespace torpor::scheduler {

GpuChoice::GpuChoice(NodeState& node, const BindingPolicy& binding, PlacementPolicy& placement,
                     bool evicts)
    : node_(node), binding_(binding), placement_(placement), evicts_(evicts) {}

bool GpuChoice::MayRunOn(const Instance& shard, const Gpu& gpu) const {
  return !shard.unserved_on.contains(gpu.id) && MayEverRunOn(shard, gpu);
}

bool GpuChoice::MayEverRunOn(const Instance& shard, const Gpu& gpu) const {
  if (gpu.capacity < shard.image.bytes) return false;
  const std::optional<bool> is_bound = binding_.MayRunOn(shard, gpu);
  if (is_bound) return *is_bound;
  return evicts_ || shard.image.copies.count(gpu.id) > 0 || gpu.free_later() >= shard.image.bytes;
}

bool GpuChoice::MayRunOnAny(const Instance& lead, const std::vector<GpuIndex>& gpus) const {
  return std::any_of(gpus.begin(), gpus.end(),
                     [&](GpuIndex gpu) { return MayRunOn(lead, node_.gpus.at(gpu)); });
}

bool GpuChoice::MayRunAnywhere(Instance& lead) const {
  if (!binding_.binds() && evicts_) return true;
  std::set<GpuIndex> taken;
  for (const Instance* const shard : InOrder(lead)) {
    const auto gpu = std::find_if(node_.gpus.begin(), node_.gpus.end(), [&](const auto& entry) {
      return taken.count(entry.first) == 0 && MayEverRunOn(*shard, entry.second);
    });
    if (gpu == node_.gpus.end()) return false;
    taken.insert(gpu->first);
  }
  return true;
}

std::vector<GpuIndex> GpuChoice::OpenGpus(const std::set<GpuIndex>& claimed) const {
  std::vector<GpuIndex> open;
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.is_up || claimed.count(id) > 0) continue;
    if (gpu.tenant) {
      const Tenancy& tenancy = node_.LeadOf(gpu.tenant).tenancy;
      const bool may_become_free = tenancy.phase == Phase::kRevoked ||
                                   (tenancy.phase == Phase::kLeased && tenancy.is_implicit);
      if (!may_become_free) continue;
    }
    open.push_back(id);
  }
  return open;
}

GpuChoice::Chosen GpuChoice::Choose(Instance& lead, const std::set<GpuIndex>& claimed,
                                    TimePoint now) {
  Chosen chosen;
  std::set<GpuIndex> taken = claimed;
  for (Instance* const shard : InOrder(lead)) {
    const std::vector<GpuIndex> candidates = FreeGpusFor(*shard, taken);
    if (candidates.empty()) return {};
    const std::optional<GpuIndex> gpu = placement_.Choose(*shard, candidates, node_, now);
    if (!gpu) return {.gpus = {}, .is_waiting_better = true};
    chosen.gpus.emplace_back(shard, *gpu);
    taken.insert(*gpu);
  }
  return chosen;
}

std::vector<Instance*> GpuChoice::InOrder(Instance& lead) const {
  std::vector<Instance*> shards;
  node_.ForEachShard(lead, [&](Instance& shard) { shards.push_back(&shard); });
  std::stable_sort(shards.begin(), shards.end(), [this](const Instance* a, const Instance* b) {
    const bool is_a_nowhere = a->image.copies.empty();
    if (is_a_nowhere != b->image.copies.empty()) return !is_a_nowhere;
    return !evicts_ && a->image.bytes > b->image.bytes;
  });
  return shards;
}

std::vector<GpuIndex> GpuChoice::FreeGpusFor(const Instance& shard,
                                             const std::set<GpuIndex>& taken) const {
  std::vector<GpuIndex> free;
  for (const auto& [id, gpu] : node_.gpus) {
    const bool is_free = gpu.is_up && !gpu.tenant && taken.count(id) == 0;
    if (is_free && MayRunOn(shard, gpu)) free.push_back(id);
  }
  return free;
}

}  // namespace torpor::scheduler
