#include <algorithm>
#include <map>

#include "scheduler/binding_policy.h"

namespace torpor::scheduler {
namespace {

class EarlyBinding final : public BindingPolicy {
 public:
  bool binds() const override { return true; }

  std::optional<bool> MayRunOn(const Instance& shard, const Gpu& gpu) const override {
    if (shard.image.bytes == 0) return std::nullopt;
    return shard.bound_gpu == gpu.id;
  }

  bool MayGrow(const Instance& shard, Bytes bytes, const NodeState& node) const override {
    // A shard on a GPU can be bound to that GPU only; a shard on no GPU waits.
    const bool is_on_gpu =
        shard.bound_gpu || !shard.image.copies.empty() || !shard.tenancy.is_idle();
    const Bytes more = shard.bound_gpu ? bytes : shard.image.bytes + bytes;
    return !is_on_gpu || RoomiestFor(shard, more, node).has_value();
  }

  std::optional<GpuIndex> OnGrowing(const Instance& shard, Bytes bytes,
                                    const NodeState& node) override {
    std::optional<GpuIndex> gpu = shard.bound_gpu;
    if (!gpu) {
      bytes += shard.image.bytes;
      gpu = RoomiestFor(shard, bytes, node);
    }
    if (gpu) bound_[*gpu] += bytes;
    return gpu;
  }

  void OnShrunk(const Instance& shard, Bytes bytes) override {
    if (shard.bound_gpu) bound_[*shard.bound_gpu] -= bytes;
  }

 private:
  // The GPU with the most unbound memory on which `bytes` more of the shard may be bound.
  std::optional<GpuIndex> RoomiestFor(const Instance& shard, Bytes bytes,
                                      const NodeState& node) const {
    std::optional<GpuIndex> only = shard.bound_gpu;
    if (!only && !shard.image.copies.empty()) only = shard.image.copies.begin()->first;
    if (!only && !shard.tenancy.is_idle()) only = shard.tenancy.gpu;
    const Gpu* best = nullptr;
    for (const auto& [id, gpu] : node.gpus) {
      const bool may_be = (!only || *only == id) && !IsAnothers(shard, id, node) &&
                          gpu.capacity >= BoundTo(id) + bytes;
      const bool is_better =
          !best || gpu.capacity - BoundTo(id) > best->capacity - BoundTo(best->id);
      if (may_be && is_better) best = &gpu;
    }
    return best ? std::optional(best->id) : std::nullopt;
  }

  // Whether another shard of the instance is bound there: they run at the same time.
  static bool IsAnothers(const Instance& shard, GpuIndex gpu, const NodeState& node) {
    bool is_anothers = false;
    node.ForEachShard(node.LeadOf(shard.id), [&](const Instance& other) {
      is_anothers = is_anothers || (other.id != shard.id && other.bound_gpu == gpu);
    });
    return is_anothers;
  }

  Bytes BoundTo(GpuIndex gpu) const {
    const auto bound = bound_.find(gpu);
    return bound == bound_.end() ? 0 : bound->second;
  }

  std::map<GpuIndex, Bytes> bound_;  // images bound to each GPU, wherever they are now
};

}  // namespace

std::unique_ptr<BindingPolicy> MakeEarlyBinding() { return std::make_unique<EarlyBinding>(); }

}  // namespace torpor::scheduler
