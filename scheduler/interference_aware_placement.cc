#include <algorithm>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

class InterferenceAwarePlacement final : public PlacementPolicy {
 public:
  std::optional<GpuIndex> Choose(const Instance& instance, const std::vector<GpuIndex>& candidates,
                                 const NodeState& node, TimePoint) override {
    for (const GpuIndex gpu : candidates) {
      const auto copy = instance.copies.find(gpu);
      if (copy != instance.copies.end() && copy->second.state != Copy::State::kLeaving) return gpu;
    }
    if (const std::optional<GpuIndex> gpu = NearestToACopy(instance, candidates, node)) return gpu;
    return LeastDisturbed(candidates, node);
  }

 private:
  // Of the pairs of a candidate and a GPU with the image the one with the fastest link. Links are
  // known by their order from each GPU.
  static std::optional<GpuIndex> NearestToACopy(const Instance& instance,
                                                const std::vector<GpuIndex>& candidates,
                                                const NodeState& node) {
    if (!instance.is_alone()) return std::nullopt;
    std::optional<std::pair<std::size_t, GpuIndex>> best;
    for (const GpuIndex candidate : candidates) {
      const std::vector<GpuIndex>& sources = node.gpus.at(candidate).sources;
      const auto source = std::find_if(sources.begin(), sources.end(), [&](GpuIndex from) {
        return instance.is_present_on(from);
      });
      if (source == sources.end()) continue;
      const auto order = static_cast<std::size_t>(source - sources.begin());
      if (!best || order < best->first) best = {order, candidate};
    }
    return best ? std::optional(best->second) : std::nullopt;
  }

  enum Disturbance { kNone, kLight, kHeavy };

  static GpuIndex LeastDisturbed(const std::vector<GpuIndex>& candidates, const NodeState& node) {
    const Gpu* best = nullptr;
    for (const GpuIndex id : candidates) {
      const Gpu& gpu = node.gpus.at(id);
      // The paper takes any of those that are alike. The emptier one evicts less.
      const bool is_better = !best || DisturbanceOf(gpu, node) < DisturbanceOf(*best, node) ||
                             (DisturbanceOf(gpu, node) == DisturbanceOf(*best, node) &&
                              gpu.free_bytes() > best->free_bytes());
      if (is_better) best = &gpu;
    }
    return best->id;
  }

  static Disturbance DisturbanceOf(const Gpu& gpu, const NodeState& node) {
    Disturbance worst = kNone;
    for (const auto& [id, neighbour] : node.gpus) {
      const bool shares_a_switch = gpu.pcie_switch && neighbour.pcie_switch == gpu.pcie_switch;
      if (id == gpu.id || !shares_a_switch || !neighbour.loading) continue;
      const Function& function = node.FunctionOf(node.instances.at(neighbour.loading));
      worst = std::max(worst, function.run_times.is_heavy() ? kHeavy : kLight);
    }
    return worst;
  }
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakeInterferenceAwarePlacement() {
  return std::make_unique<InterferenceAwarePlacement>();
}

}  // namespace torpor::scheduler
