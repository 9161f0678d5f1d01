#include <algorithm>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

class LruEviction final : public EvictionPolicy {
 public:
  std::vector<InstanceId> Order(GpuIndex, std::vector<InstanceId> candidates, const NodeState& node,
                                TimePoint) override {
    std::stable_sort(candidates.begin(), candidates.end(), [&](InstanceId a, InstanceId b) {
      return node.instances.at(a).last_used < node.instances.at(b).last_used;
    });
    return candidates;
  }
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLruEviction() { return std::make_unique<LruEviction>(); }

}  // namespace torpor::scheduler
