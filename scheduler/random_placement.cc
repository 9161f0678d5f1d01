#include <random>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

class RandomPlacement final : public PlacementPolicy {
 public:
  explicit RandomPlacement(std::uint64_t seed) : random_(seed) {}

  std::optional<GpuIndex> Choose(const Instance& instance, const std::vector<GpuIndex>& candidates,
                                 const NodeState&, TimePoint) override {
    for (const GpuIndex gpu : candidates) {
      if (instance.image.is_present_on(gpu)) return gpu;
    }
    return candidates[random_() % candidates.size()];
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace

std::unique_ptr<PlacementPolicy> MakeRandomPlacement(std::uint64_t seed) {
  return std::make_unique<RandomPlacement>(seed);
}

}  // namespace torpor::scheduler
