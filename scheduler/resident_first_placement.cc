#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

class ResidentFirstPlacement final : public PlacementPolicy {
 public:
  std::optional<GpuIndex> Choose(const Instance& instance, const std::vector<GpuIndex>& candidates,
                                 const NodeState& node, TimePoint) override {
    const Gpu* best = nullptr;
    for (const GpuIndex gpu : candidates) {
      const auto copy = instance.copies.find(gpu);
      if (copy != instance.copies.end() && copy->second.state != Copy::State::kLeaving) return gpu;
      const Gpu& candidate = node.gpus.at(gpu);
      if (!best || candidate.free_bytes() > best->free_bytes()) best = &candidate;
    }
    return best ? std::optional(best->id) : std::nullopt;
  }
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakeResidentFirstPlacement() {
  return std::make_unique<ResidentFirstPlacement>();
}

}  // namespace torpor::scheduler
