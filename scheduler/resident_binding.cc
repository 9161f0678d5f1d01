#include "scheduler/binding_policy.h"

namespace torpor::scheduler {
namespace {

class ResidentBinding final : public BindingPolicy {
 public:
  bool binds() const override { return true; }

  std::optional<bool> MayRunOn(const Instance& shard, const Gpu& gpu) const override {
    if (shard.image.copies.empty()) return std::nullopt;
    return shard.image.copies.count(gpu.id) > 0;
  }

  bool IsCold(const Instance& lead) const override {
    return lead.is_alone() && !lead.image.is_present();
  }

  std::optional<GpuIndex> OnArriving(const Instance& shard, GpuIndex gpu) const override {
    return shard.is_alone() ? gpu : shard.bound_gpu;
  }

  std::optional<GpuIndex> OnLeft(const Instance&) const override { return std::nullopt; }
};

}  // namespace

std::unique_ptr<BindingPolicy> MakeResidentBinding() { return std::make_unique<ResidentBinding>(); }

}  // namespace torpor::scheduler
