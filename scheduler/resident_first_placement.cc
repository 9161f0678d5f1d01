#include <algorithm>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

class ResidentFirstPlacement final : public PlacementPolicy {
 public:
  std::optional<GpuIndex> Choose(const Instance& instance, const std::vector<GpuIndex>& candidates,
                                 const NodeState& node, TimePoint) override {
    const Gpu* best = nullptr;
    for (const GpuIndex gpu : candidates) {
      const auto copy = instance.image.copies.find(gpu);
      if (copy != instance.image.copies.end() && copy->second.state != Copy::State::kLeaving)
        return gpu;
      const Gpu& candidate = node.gpus.at(gpu);
      if (!best || candidate.free_bytes() > best->free_bytes()) best = &candidate;
    }
    if (const std::optional<GpuIndex> near = NearItsCopy(instance, candidates, node)) return near;
    return best ? std::optional(best->id) : std::nullopt;
  }

 private:
  // Links are as fast in one direction as in the other.
  static std::optional<GpuIndex> NearItsCopy(const Instance& instance,
                                             const std::vector<GpuIndex>& candidates,
                                             const NodeState& node) {
    if (!instance.is_alone()) return std::nullopt;
    for (const auto& [from, copy] : instance.image.copies) {
      if (copy.state != Copy::State::kPresent) continue;
      for (const GpuIndex gpu : node.gpus.at(from).sources) {
        const bool is_candidate = std::binary_search(candidates.begin(), candidates.end(), gpu);
        if (is_candidate && node.gpus.at(gpu).free_bytes() >= instance.image.bytes) return gpu;
      }
    }
    return std::nullopt;
  }
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakeResidentFirstPlacement() {
  return std::make_unique<ResidentFirstPlacement>();
}

}  // namespace torpor::scheduler
