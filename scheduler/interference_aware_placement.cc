#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

class InterferenceAwarePlacement final : public PlacementPolicy {
 public:
  // Among equal GPUs, of which the paper takes any, the GPU free for longest.
  std::optional<GpuIndex> Choose(const Instance& instance, const std::vector<GpuIndex>& candidates,
                                 const NodeState& node, TimePoint) override {
    if (const std::optional<GpuIndex> gpu = WhereItIs(instance, candidates, node)) return gpu;
    if (const std::optional<GpuIndex> gpu = NearestToACopy(instance, candidates, node)) return gpu;
    return LeastDisturbed(instance, candidates, node);
  }

 private:
  // The candidate with the least key; among equal keys the GPU free for longest.
  template <typename Key, typename KeyOf>
  static std::optional<std::pair<Key, GpuIndex>> Least(const std::vector<GpuIndex>& candidates,
                                                       const NodeState& node, const KeyOf& key_of) {
    std::optional<std::tuple<Key, TimePoint, GpuIndex>> least;
    for (const GpuIndex id : candidates) {
      const Gpu& gpu = node.gpus.at(id);
      const std::optional<Key> key = key_of(gpu);
      if (!key) continue;
      const std::tuple candidate(*key, gpu.free_since, id);
      if (!least || candidate < *least) least = candidate;
    }
    if (!least) return std::nullopt;
    return std::pair(std::get<0>(*least), std::get<2>(*least));
  }

  static std::optional<GpuIndex> WhereItIs(const Instance& instance,
                                           const std::vector<GpuIndex>& candidates,
                                           const NodeState& node) {
    enum { kThere, kBehind, kComing };
    const auto least = Least<int>(candidates, node, [&](const Gpu& gpu) -> std::optional<int> {
      const auto copy = instance.image.copies.find(gpu.id);
      if (copy == instance.image.copies.end() || copy->second.state == Copy::State::kLeaving)
        return {};
      if (copy->second.state == Copy::State::kComing) return kComing;
      return instance.image.is_behind_on(gpu.id) ? kBehind : kThere;
    });
    return least ? std::optional(least->second) : std::nullopt;
  }

  // Of the pairs of a candidate and a GPU with the image the one with the fastest link. Links are
  // known by their order from each GPU.
  static std::optional<GpuIndex> NearestToACopy(const Instance& instance,
                                                const std::vector<GpuIndex>& candidates,
                                                const NodeState& node) {
    if (!instance.is_alone()) return std::nullopt;
    const auto least = Least<std::ptrdiff_t>(
        candidates, node, [&](const Gpu& gpu) -> std::optional<std::ptrdiff_t> {
          const auto source =
              std::find_if(gpu.sources.begin(), gpu.sources.end(),
                           [&](GpuIndex from) { return instance.image.is_present_on(from); });
          if (source == gpu.sources.end()) return {};
          return source - gpu.sources.begin();
        });
    return least ? std::optional(least->second) : std::nullopt;
  }

  enum Disturbance { kNone, kLight, kHeavy };

  static GpuIndex LeastDisturbed(const Instance& instance, const std::vector<GpuIndex>& candidates,
                                 const NodeState& node) {
    using Key = std::pair<Disturbance, bool>;
    const auto least = Least<Key>(candidates, node, [&](const Gpu& gpu) {
      return std::optional(Key(DisturbanceOf(gpu, node), gpu.free_bytes() < instance.image.bytes));
    });
    return least->second;
  }

  static Disturbance DisturbanceOf(const Gpu& gpu, const NodeState& node) {
    Disturbance worst = kNone;
    for (const auto& [id, neighbour] : node.gpus) {
      const bool shares_a_switch = gpu.pcie_switch && neighbour.pcie_switch == gpu.pcie_switch;
      if (id == gpu.id || !shares_a_switch || !neighbour.loading) continue;
      const FunctionState& function = node.FunctionOf(node.instances.at(neighbour.loading));
      worst = std::max(worst, node.IsHeavy(function) ? kHeavy : kLight);
    }
    return worst;
  }
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakeInterferenceAwarePlacement() {
  return std::make_unique<InterferenceAwarePlacement>();
}

}  // namespace torpor::scheduler
