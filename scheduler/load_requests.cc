#include "scheduler/load_requests.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace torpor::scheduler {
namespace {

// Whether the image is on the GPU, or comes there.
bool IsThereSoon(const Instance& shard, GpuIndex gpu) {
  const auto copy = shard.image.copies.find(gpu);
  return copy != shard.image.copies.end() && copy->second.state != Copy::State::kLeaving;
}

}  // namespace

LoadRequests::LoadRequests(NodeState& node, const GpuChoice& choice, PlacementPolicy& placement,
                           GpuImages& images, KeepAlives& keep_alives, Outbox& outbox)
    : node_(node),
      choice_(choice),
      placement_(placement),
      images_(images),
      keep_alives_(keep_alives),
      outbox_(outbox) {}

void LoadRequests::Add(const Instance& lead, std::optional<GpuIndex> gpu) {
  wanted_[lead.id] = {.gpu = gpu, .destination = {}, .sent_for = {}};
}

bool LoadRequests::IsWanted(const Instance& shard) const {
  const auto wanted = wanted_.find(shard.lead);
  return wanted != wanted_.end() && wanted->second.sent_for.count(shard.id) == 0;
}

void LoadRequests::Refuse(const Instance& lead, LoadRefusal reason) {
  Forget(lead);
  outbox_.Add(RefuseLoad{lead.id, reason});
}

void LoadRequests::Serve() {
  for (auto next = wanted_.begin(); next != wanted_.end();) {
    const auto wanted = next++;
    Instance& lead = node_.instances.at(wanted->first);
    if (const std::optional<LoadRefusal> reason = ReasonToRefuse(lead, wanted->second)) {
      Refuse(lead, *reason);
    } else if (Serve(lead, wanted->second)) {
      wanted_.erase(wanted);
    }
  }
}

bool LoadRequests::Serve(Instance& lead, Load& load) {
  if (!lead.tenancy.is_idle()) return true;
  if (!ChooseGpus(lead, load)) return false;
  bool is_sent_for = true;
  node_.ForEachShard(lead,
                     [&](Instance& shard) { is_sent_for = Send(shard, load) && is_sent_for; });
  return is_sent_for;
}

std::optional<LoadRefusal> LoadRequests::ReasonToRefuse(const Instance& lead,
                                                        const Load& load) const {
  if (!lead.tenancy.is_idle()) {
    const bool is_elsewhere = load.gpu && *load.gpu != lead.tenancy.gpu;
    return is_elsewhere ? std::optional(LoadRefusal::kInUse) : std::nullopt;
  }
  std::vector<const Gpu*> gpus;
  Bytes largest = 0;
  for (const auto& [id, gpu] : node_.gpus) {
    if (!gpu.is_up || (load.gpu && *load.gpu != id)) continue;
    gpus.push_back(&gpu);
    largest = std::max(largest, gpu.capacity);
  }
  if (gpus.empty()) return LoadRefusal::kNoGpu;
  if (gpus.size() <= lead.secondary_shards.size()) return LoadRefusal::kTooFewGpus;
  std::optional<LoadRefusal> reason;
  node_.ForEachShard(lead, [&](const Instance& shard) {
    const bool may_run = std::any_of(gpus.begin(), gpus.end(), [&](const Gpu* gpu) {
      return choice_.MayEverRunOn(shard, *gpu);
    });
    if (may_run || reason) return;
    reason = shard.image.bytes > largest ? LoadRefusal::kTooLarge : LoadRefusal::kNoRoom;
  });
  return reason;
}

bool LoadRequests::ChooseGpus(Instance& lead, Load& load) {
  const auto is_decided = [&](const Instance& shard) {
    const auto destination = load.destination.find(shard.id);
    return destination != load.destination.end() && node_.gpus.at(destination->second).is_up &&
           !shard.unserved_on.contains(destination->second);
  };
  std::set<GpuIndex> taken;
  node_.ForEachShard(lead, [&](const Instance& shard) {
    if (is_decided(shard)) taken.insert(load.destination.at(shard.id));
  });
  std::vector<std::pair<InstanceId, GpuIndex>> chosen;
  bool has_room = true;
  node_.ForEachShard(lead, [&](const Instance& shard) {
    if (!has_room || is_decided(shard)) return;
    // Other shards stay where they are.
    std::set<GpuIndex> others = taken;
    node_.ForEachShard(lead, [&](const Instance& other) {
      if (other.id == shard.id) return;
      for (const auto& [id, copy] : other.image.copies) others.insert(id);
    });
    const std::optional<GpuIndex> gpu = ChooseGpu(shard, load, others);
    has_room = gpu.has_value();
    if (!gpu) return;
    taken.insert(*gpu);
    chosen.emplace_back(shard.id, *gpu);
  });
  // Some shards without the others are of no use.
  if (!has_room) return false;
  for (const auto& [shard, gpu] : chosen) load.destination[shard] = gpu;
  return true;
}

std::optional<GpuIndex> LoadRequests::ChooseGpu(const Instance& shard, const Load& load,
                                                const std::set<GpuIndex>& taken) {
  std::vector<GpuIndex> candidates;
  for (const auto& [id, gpu] : node_.gpus) {
    const bool is_wanted = !load.gpu || *load.gpu == id;
    const bool may_be =
        gpu.is_up && is_wanted && taken.count(id) == 0 && choice_.MayRunOn(shard, gpu);
    if (may_be && HasRoom(shard, gpu)) candidates.push_back(id);
  }
  if (candidates.empty()) return std::nullopt;
  return placement_.Choose(shard, candidates, node_, outbox_.now());
}

bool LoadRequests::HasRoom(const Instance& shard, const Gpu& gpu) const {
  if (IsThereSoon(shard, gpu.id)) return true;
  // The room that is being made for a tenant is a request's.
  const bool is_placing =
      gpu.tenant && node_.instances.at(gpu.tenant).tenancy.phase == Phase::kPlacing;
  if (is_placing) return false;
  Bytes room = gpu.free_later();
  if (!images_.evicts()) return room >= shard.image.bytes;
  for (auto victim = gpu.evictable.begin();
       victim != gpu.evictable.end() && room < shard.image.bytes; ++victim) {
    room += node_.instances.at(victim->second).image.copies.at(gpu.id).bytes;
  }
  return room >= shard.image.bytes;
}

bool LoadRequests::Send(Instance& shard, Load& load) {
  if (load.sent_for.count(shard.id) > 0) return true;
  Gpu& gpu = node_.gpus.at(load.destination.at(shard.id));
  if (IsThereSoon(shard, gpu.id)) {
    shard.image.NoteUse(outbox_.now());
    images_.Rank(shard);
    keep_alives_.Note(node_.LeadOf(shard.id));
  } else if (HasRoom(shard, gpu) && images_.Bring(shard, gpu)) {
    shard.image.copies.at(gpu.id).is_for_load = true;
  } else {
    return false;
  }
  load.sent_for.insert(shard.id);
  return true;
}

}  // namespace torpor::scheduler
