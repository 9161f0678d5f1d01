#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

class LruEviction final : public EvictionPolicy {
 public:
  EvictionRank Rank(const Instance& instance, GpuIndex, const NodeState&) const override {
    return {.value = ToSeconds(instance.image.last_used.time_since_epoch())};
  }
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLruEviction() { return std::make_unique<LruEviction>(); }

}  // namespace torpor::scheduler
