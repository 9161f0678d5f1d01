#include "scheduler/gpu_images.h"

#include <algorithm>
#include <utility>

namespace torpor::scheduler {
namespace {

// Moves an image in an order of eviction, if its place is another one.
void Reorder(InstanceId shard, const std::optional<EvictionRank>& rank,
             std::optional<EvictionRank>* place, EvictionOrder* order) {
  if (rank == *place) return;
  if (*place) order->erase({**place, shard});
  if (rank) order->emplace(*rank, shard);
  *place = rank;
}

// Whether a copy is there on another GPU than `at`.
bool HasOther(const Image& image, GpuIndex at) {
  return std::any_of(image.copies.begin(), image.copies.end(), [at](const auto& copy) {
    return copy.first != at && copy.second.state == Copy::State::kPresent;
  });
}

}  // namespace

GpuImages::GpuImages(NodeState& node, const EvictionPolicy& eviction, BindingPolicy& binding,
                     RequestQueue& queue, Options options, Outbox& outbox)
    : node_(node),
      eviction_(eviction),
      binding_(binding),
      queue_(queue),
      options_(options),
      outbox_(outbox) {}

bool GpuImages::MakeRoom(Gpu& gpu, Bytes bytes) {
  if (gpu.free_bytes() >= bytes) return true;
  if (!options_.evicts) return false;
  while (gpu.free_later() < bytes && !gpu.evictable.empty()) {
    Instance& victim = node_.instances.at(gpu.evictable.begin()->second);
    SwapOut(victim, gpu.id, SwapOutReason::kMemoryFull);
  }
  return false;
}

bool GpuImages::Bring(Instance& shard, Gpu& gpu) {
  // Room is made while the image still leaves another GPU.
  const bool has_room = MakeRoom(gpu, shard.image.bytes);
  // If the room depends on another waiting instance, the source is given up: otherwise both would
  // wait for ever.
  const bool will_have_room = gpu.free_later() >= shard.image.bytes;
  const std::optional<GpuIndex> source = will_have_room ? SourceOf(shard, gpu) : std::nullopt;
  if (!KeepsReplicas(shard)) {
    for (const auto& [at, other] : shard.image.copies) {
      if (other.state == Copy::State::kPresent && at != source) {
        SwapOut(shard, at, SwapOutReason::kMove);
      }
    }
    if (shard.image.copies.size() > (source ? 1 : 0)) return false;
  }
  if (!has_room || shard.image.copies.count(gpu.id) > 0) return false;
  BeginSwapIn(shard, gpu, source);
  return true;
}

void GpuImages::SwapIn(Instance& shard, Gpu& gpu) { BeginSwapIn(shard, gpu, std::nullopt); }

bool GpuImages::KeepsReplicas(const Instance& shard) const {
  return shard.image.keeps_replicas && !binding_.binds();
}

std::optional<GpuIndex> GpuImages::SourceOf(const Instance& shard, const Gpu& gpu) const {
  if (!options_.swaps_from_peers || !shard.is_alone()) return std::nullopt;
  std::optional<GpuIndex> fastest;
  for (const GpuIndex source : gpu.sources) {
    if (!shard.image.is_present_on(source)) continue;
    // Other copies would have to fetch the changes first.
    if (!shard.image.is_behind_on(source)) return source;
    if (!fastest) fastest = source;
  }
  return fastest;
}

void GpuImages::BeginSwapIn(Instance& shard, Gpu& gpu, std::optional<GpuIndex> source) {
  const bool keeps_source = source && KeepsReplicas(shard);
  if (keeps_source) {
    ++shard.image.copies.at(*source).readers;
  } else if (source) {
    SetState(shard, *source, Copy::State::kLeaving);
  } else {
    gpu.loading = shard.id;
    gpu.loading_since = outbox_.now();
    gpu.loads_from_disk = shard.image.is_on_disk;
  }
  // Whatever comes, changes elsewhere are written back before.
  for (auto& [at, other] : shard.image.copies) other.is_unsaved = false;
  Copy& copy = shard.image.copies[gpu.id];
  if (keeps_source) copy.source = source;
  ++gpu.swaps;
  copy.bytes = shard.image.bytes;
  gpu.used += copy.bytes;
  Rank(shard);
  queue_.Bind(shard, binding_.OnArriving(shard, gpu.id));
  const bool is_for_lease = shard.tenancy.phase == Phase::kPlacing && shard.tenancy.gpu == gpu.id;
  if (is_for_lease) {
    Tenancy& tenancy = node_.LeadOf(shard.id).tenancy;
    tenancy.image_source = source ? ImageSource::kPeer : shard.image.source_without_peer();
    tenancy.run_since = outbox_.now();
  }
  outbox_.Add(scheduler::SwapIn{shard.id, gpu.id, source, keeps_source});
}

void GpuImages::SwapOut(Instance& shard, GpuIndex gpu, SwapOutReason reason) {
  SetState(shard, gpu, Copy::State::kLeaving);
  outbox_.Add(scheduler::SwapOut{shard.id, gpu, reason});
}

void GpuImages::SwapOutAll(Instance& lead, SwapOutReason reason) {
  node_.ForEachShard(lead, [&](Instance& shard) {
    for (const auto& [gpu, copy] : shard.image.copies) {
      const bool may_go = copy.state == Copy::State::kPresent && copy.readers == 0;
      if (may_go) SwapOut(shard, gpu, reason);
    }
  });
}

void GpuImages::SwapOutFrom(Instance& lead, GpuIndex gpu, SwapOutReason reason) {
  const auto at = node_.gpus.find(gpu);
  if (at == node_.gpus.end()) return;
  const InstanceId tenant = at->second.tenant;
  if (tenant && node_.LeadOf(tenant).id == lead.id) return;
  node_.ForEachShard(lead, [&](Instance& shard) {
    const auto copy = shard.image.copies.find(gpu);
    if (copy == shard.image.copies.end()) return;
    const bool may_go = copy->second.state == Copy::State::kPresent && copy->second.readers == 0;
    if (may_go) SwapOut(shard, gpu, reason);
  });
}

void GpuImages::OnPresent(Instance& shard, GpuIndex gpu) {
  EndReading(shard, gpu);
  SetState(shard, gpu, Copy::State::kPresent);
}

void GpuImages::SetState(Instance& shard, GpuIndex at, Copy::State state) {
  Copy& copy = shard.image.copies.at(at);
  Gpu& gpu = node_.gpus.at(at);
  copy.state = state;
  if (state == Copy::State::kPresent) {
    --gpu.swaps;
  } else {
    ++gpu.swaps;
    gpu.leaving += copy.bytes;
  }
  Rank(shard);
  queue_.Reorder(shard);
}

void GpuImages::Drop(Instance& shard, GpuIndex at) {
  const auto found = shard.image.copies.find(at);
  if (found == shard.image.copies.end()) return;
  Gpu& gpu = node_.gpus.at(at);
  Copy& copy = found->second;
  if (copy.state == Copy::State::kComing) EndReading(shard, at);
  if (copy.state != Copy::State::kPresent) --gpu.swaps;
  if (copy.state == Copy::State::kLeaving) gpu.leaving -= copy.bytes;
  if (copy.is_saving) --gpu.saves;
  gpu.used -= copy.bytes;
  copy.state = Copy::State::kLeaving;  // ranked no more
  Rank(shard);
  shard.image.copies.erase(found);
  for (auto& [gpu_of_other, other] : shard.image.copies) {
    if (other.source == at) other.source.reset();
  }
  if (gpu.loading == shard.id) gpu.loading = {};
  Rank(shard);
  queue_.Bind(shard, binding_.OnLeft(shard));
  queue_.Reorder(shard);
  queue_.Update(node_.LeadOf(shard.id));
}

void GpuImages::EndReading(Instance& shard, GpuIndex reader) {
  Copy& coming = shard.image.copies.at(reader);
  if (!coming.source) return;
  const auto source = shard.image.copies.find(*std::exchange(coming.source, std::nullopt));
  if (source == shard.image.copies.end()) return;
  --source->second.readers;
  Rank(shard);
}

void GpuImages::Grow(Instance& shard, Bytes bytes) {
  shard.image.bytes += bytes;
  for (auto& [gpu, copy] : shard.image.copies) {
    if (copy.state == Copy::State::kLeaving) continue;
    copy.bytes += bytes;
    node_.gpus.at(gpu).used += bytes;
  }
  Rank(shard);
}

void GpuImages::Shrink(Instance& shard, Bytes bytes) {
  shard.image.bytes -= std::min(shard.image.bytes, bytes);
  for (auto& [gpu, copy] : shard.image.copies) {
    // A leaving copy may keep the old size until gone.
    if (copy.state == Copy::State::kLeaving) continue;
    const Bytes less = std::min(copy.bytes, bytes);
    copy.bytes -= less;
    node_.gpus.at(gpu).used -= less;
  }
  Rank(shard);
}

void GpuImages::OnGranted(Instance& shard) {
  for (auto& [at, copy] : shard.image.copies) {
    // Changes on other GPUs are written back before the lease begins.
    copy.is_unsaved = at == shard.tenancy.gpu && !shard.image.is_constant;
  }
  Copy& copy = shard.image.copies.at(shard.tenancy.gpu);
  // A write-back under way misses the changes of the lease.
  if (std::exchange(copy.is_saving, false)) --node_.gpus.at(shard.tenancy.gpu).saves;
  Rank(shard);
}

void GpuImages::WriteBackFirst(Gpu& gpu) {
  const InstanceId first = gpu.unsaved.begin()->second;
  node_.instances.at(first).image.copies.at(gpu.id).is_saving = true;
  ++gpu.saves;
  outbox_.Add(WriteBack{first, gpu.id});
}

void GpuImages::OnWrittenBack(Instance& shard, GpuIndex gpu, bool is_clean) {
  const auto copy = shard.image.copies.find(gpu);
  if (copy == shard.image.copies.end() || !std::exchange(copy->second.is_saving, false)) return;
  --node_.gpus.at(gpu).saves;
  if (is_clean) copy->second.is_unsaved = false;
  Rank(shard);
}

void GpuImages::Rank(Instance& shard) {
  for (auto& [at, copy] : shard.image.copies) {
    Gpu& gpu = node_.gpus.at(at);
    // Replicas may go while the image is in use elsewhere.
    const bool is_in_use =
        !shard.tenancy.is_idle() && (shard.tenancy.gpu == at || !shard.image.keeps_replicas);
    const bool may_go = !is_in_use && copy.state == Copy::State::kPresent && copy.readers == 0;
    std::optional<EvictionRank> rank;
    if (may_go) {
      rank = eviction_.Rank(shard, at, node_);
      rank->is_pinned = shard.image.is_pinned && !HasOther(shard.image, at);
    }
    Reorder(shard.id, copy.bytes > 0 ? rank : std::nullopt, &copy.evictable_rank, &gpu.evictable);
    Reorder(shard.id, copy.is_unsaved ? rank : std::nullopt, &copy.unsaved_rank, &gpu.unsaved);
  }
}

}  // namespace torpor::scheduler
