#include <algorithm>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

class HeavinessEviction final : public EvictionPolicy {
 public:
  EvictionRank Rank(const Instance& instance, GpuIndex gpu, const NodeState& node) const override {
    enum { kReplica, kLight, kHeavy };
    const bool is_replica = std::any_of(
        instance.image.copies.begin(), instance.image.copies.end(), [&](const auto& copy) {
          return copy.first != gpu && copy.second.state == Copy::State::kPresent;
        });
    const bool is_heavy = node.IsHeavy(node.FunctionOf(instance));
    return {.group = is_replica ? kReplica
                     : is_heavy ? kHeavy
                                : kLight,
            .value = ToSeconds(instance.image.last_used.time_since_epoch())};
  }
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeHeavinessEviction() {
  return std::make_unique<HeavinessEviction>();
}

}  // namespace torpor::scheduler
