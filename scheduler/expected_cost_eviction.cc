#include <algorithm>
#include <cmath>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

// Cost of an image's absence per second and byte: rate of use times the extra time of a run that
// swaps in. Logarithms are compared: use decays exponentially, so every logarithm falls at the same
// rate and the order holds while time passes.
class ExpectedCostEviction final : public EvictionPolicy {
 public:
  EvictionRank Rank(const Instance& instance, GpuIndex gpu, const NodeState& node) const override {
    enum { kReplica, kOnly };
    for (const auto& [at, copy] : instance.image.copies) {
      const bool is_other = at != gpu && copy.state == Copy::State::kPresent;
      if (is_other) return {.group = kReplica, .value = instance.image.log_use};
    }
    const auto bytes = static_cast<double>(std::max<Bytes>(instance.image.bytes, 1));
    const double seconds = CostOfSwap(node.FunctionOf(instance).run_times, bytes);
    return {.group = kOnly, .value = instance.image.log_use + std::log(seconds) - std::log(bytes)};
  }

 private:
  static double CostOfSwap(const RunTimes& times, double bytes) {
    constexpr double kUnknownBytesPerSecond = 12e9;
    const std::optional<Duration> resident = times.of(ImageSource::kResident).value();
    const std::optional<Duration> from_host = times.of(ImageSource::kHost).value();
    if (!resident || !from_host) return bytes / kUnknownBytesPerSecond;
    return std::max(ToSeconds(*from_host) - ToSeconds(*resident), kMinCost);
  }

  // A swap costs something even where the run hides it.
  static constexpr double kMinCost = 1e-5;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeExpectedCostEviction() {
  return std::make_unique<ExpectedCostEviction>();
}

}  // namespace torpor::scheduler
