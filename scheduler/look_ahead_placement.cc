#include <algorithm>
#include <tuple>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

// Costs are in seconds.
class LookAheadPlacement final : public PlacementPolicy {
 public:
  std::optional<GpuIndex> Choose(const Instance& instance, const std::vector<GpuIndex>& candidates,
                                 const NodeState& node, TimePoint now) override {
    // While little is known all GPUs may cost the same: then the image stays.
    std::optional<std::tuple<double, bool, bool, TimePoint, GpuIndex>> least;
    for (const GpuIndex id : candidates) {
      const Gpu& gpu = node.gpus.at(id);
      const std::tuple option(CostOn(gpu, instance, node, now), !instance.image.is_present_on(id),
                              instance.image.is_behind_on(id), gpu.free_since, id);
      if (!least || option < *least) least = option;
    }
    const auto& [cost, must_swap, is_behind, free_since, gpu] = *least;
    const std::optional<double> cost_of_waiting = CostOfWaiting(instance, node, now);
    if (cost_of_waiting && *cost_of_waiting < cost) return std::nullopt;
    return gpu;
  }

 private:
  // Cost of an eviction as a share of the transfer that brings the image back, perhaps never.
  static constexpr double kEvictionShare = 0.25;
  // Cost of a second of waiting, with no GPU or link held.
  static constexpr double kCostOfWaitingSecond = 0.2;
  // Rate of a PCIe 3 link, assumed until a transfer of the image has been seen.
  static constexpr double kUnknownBytesPerSecond = 12e9;

  static double CostOn(const Gpu& gpu, const Instance& instance, const NodeState& node,
                       TimePoint now) {
    const RunTimes& times = node.FunctionOf(instance).run_times;
    if (instance.image.is_present_on(gpu.id))
      return ToSeconds(times.expected(ImageSource::kResident));
    const double transfer = TransferTime(instance, node);
    const double eviction = transfer * EvictedShare(gpu, instance) * kEvictionShare;
    const bool is_from_peer =
        instance.is_alone() &&
        std::any_of(gpu.sources.begin(), gpu.sources.end(),
                    [&](GpuIndex source) { return instance.image.is_present_on(source); });
    if (is_from_peer) return ToSeconds(times.expected(ImageSource::kPeer)) + eviction;
    // Transfers behind one switch slow each other down: both lose the shared time.
    return ToSeconds(times.expected(instance.image.source_without_peer())) + eviction +
           2 * SharedTime(gpu, transfer, node, now);
  }

  static double TransferTime(const Instance& instance, const NodeState& node) {
    const std::optional<Duration> seen = node.FunctionOf(instance).run_times.transfer.value();
    return seen ? ToSeconds(*seen)
                : static_cast<double>(instance.image.bytes) / kUnknownBytesPerSecond;
  }

  // Share of the image for which other images must leave.
  static double EvictedShare(const Gpu& gpu, const Instance& instance) {
    if (gpu.free_bytes() >= instance.image.bytes) return 0;
    return static_cast<double>(instance.image.bytes - gpu.free_bytes()) /
           static_cast<double>(instance.image.bytes);
  }

  // Seconds for which a transfer shares the PCIe switch with neighbours' transfers.
  static double SharedTime(const Gpu& gpu, double transfer, const NodeState& node, TimePoint now) {
    double shared = 0;
    for (const auto& [id, neighbour] : node.gpus) {
      const bool shares_a_switch = gpu.pcie_switch && neighbour.pcie_switch == gpu.pcie_switch;
      if (id == gpu.id || !shares_a_switch || !neighbour.loading) continue;
      const double all = TransferTime(node.instances.at(neighbour.loading), node);
      const double rest = std::max(all - ToSeconds(now - neighbour.loading_since), 0.1 * all);
      shared += std::min(transfer, rest);
    }
    return shared;
  }

  // Cost of waiting for the first busy GPU with the image to become free. Returns nullopt if the
  // wait would use up half of the time until the latest start.
  static std::optional<double> CostOfWaiting(const Instance& instance, const NodeState& node,
                                             TimePoint now) {
    if (instance.waiting.empty() || node.FirstOf(instance).deadline == TimePoint::max()) return {};
    const double resident =
        ToSeconds(node.FunctionOf(instance).run_times.expected(ImageSource::kResident));
    const double slack = ToSeconds(node.FirstOf(instance).deadline - now) - resident;
    std::optional<double> least;
    for (const auto& [id, copy] : instance.image.copies) {
      const std::optional<double> rest = RestOfRun(node.gpus.at(id), node, now);
      if (copy.state != Copy::State::kPresent || !rest || *rest > slack / 2) continue;
      const double cost = resident + *rest * kCostOfWaitingSecond;
      least = std::min(least.value_or(cost), cost);
    }
    return least;
  }

  // Seconds left of the GPU's current run. Returns nullopt if unknown, or if the run is overdue.
  static std::optional<double> RestOfRun(const Gpu& gpu, const NodeState& node, TimePoint now) {
    if (!gpu.is_up || !gpu.tenant) return std::nullopt;
    const Instance& tenant = node.instances.at(node.instances.at(gpu.tenant).lead);
    const RunTimes& times = node.FunctionOf(tenant).run_times;
    if (!tenant.tenancy.run_since || !times.of(tenant.tenancy.image_source).value())
      return std::nullopt;
    const double run = ToSeconds(*times.of(tenant.tenancy.image_source).value());
    const double rest = run - ToSeconds(now - *tenant.tenancy.run_since);
    return rest >= 0 ? std::optional(rest) : std::nullopt;
  }
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakeLookAheadPlacement() {
  return std::make_unique<LookAheadPlacement>();
}

}  // namespace torpor::scheduler
