#include "scheduler/growths.h"

#include <algorithm>

namespace torpor::scheduler {

Growths::Growths(NodeState& node, BindingPolicy& binding, RequestQueue& queue, GpuImages& images,
                 Outbox& outbox)
    : node_(node), binding_(binding), queue_(queue), images_(images), outbox_(outbox) {}

bool Growths::HasFor(InstanceId shard) const {
  return std::any_of(waiting_.begin(), waiting_.end(),
                     [shard](const GrowthWanted& growth) { return growth.instance == shard; });
}

void Growths::Retry() {
  std::erase_if(waiting_, [this](const GrowthWanted& growth) { return Try(growth); });
}

bool Growths::IsTooLarge(const Instance& shard, Bytes bytes) const {
  if (node_.gpus.empty()) return false;  // of images that an earlier daemon has had on GPUs
  const Bytes limit =
      shard.tenancy.is_idle() ? node_.LargestCapacity() : node_.gpus.at(shard.tenancy.gpu).capacity;
  return shard.image.bytes + bytes > limit;
}

bool Growths::IsNeeded(const Instance& shard, GpuIndex gpu, Bytes bytes) const {
  const bool is_tenant = !shard.tenancy.is_idle() && shard.tenancy.gpu == gpu;
  const bool fits = shard.image.bytes + bytes <= node_.gpus.at(gpu).capacity;
  return is_tenant || (shard.image.is_pinned && fits);
}

bool Growths::Try(const GrowthWanted& growth) {
  Instance& shard = node_.instances.at(growth.instance);
  const auto refuse = [&] {
    outbox_.Add(RefuseGrowth{growth.growth});
    return true;
  };
  if (IsTooLarge(shard, growth.bytes) || !binding_.MayGrow(shard, growth.bytes, node_)) {
    return refuse();
  }
  for (const auto& [id, copy] : shard.image.copies) {
    if (copy.state == Copy::State::kLeaving) continue;
    Gpu& gpu = node_.gpus.at(id);
    const bool is_needed = IsNeeded(shard, id, growth.bytes);
    if (is_needed && !images_.MakeRoom(gpu, growth.bytes)) {
      return images_.evicts() ? false : refuse();
    }
    // An idle, unpinned copy is not worth an eviction: the image comes back when needed.
    if (!is_needed && gpu.free_bytes() < growth.bytes) {
      if (copy.state == Copy::State::kComing || copy.readers > 0) return false;
      images_.SwapOut(shard, id, SwapOutReason::kMemoryFull);
    }
  }
  queue_.Bind(shard, binding_.OnGrowing(shard, growth.bytes, node_));
  images_.Grow(shard, growth.bytes);
  outbox_.Add(AllowGrowth{growth.growth});
  return true;
}

}  // namespace torpor::scheduler
