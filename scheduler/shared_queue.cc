#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

// A queue for each priority and tenant. Of the tenants of one priority the one goes first that has
// had the least GPU time for its weight; who had nothing to do does not get later what it did not
// use.
class SharedQueue final : public QueuePolicy {
 public:
  explicit SharedQueue(QueueFactory make) : make_(std::move(make)) {}

  void Add(const Instance& instance, const NodeState& node) override {
    const Key key = KeyOf(node.FunctionOf(instance));
    Lane& lane = LaneAt(key);
    if (lane.waiting++ == 0) lane.used = std::max(lane.used, LeastUsed(key));
    lane.queue->Add(instance, node);
  }
  void Remove(const Instance& instance, const NodeState& node) override {
    Lane& lane = lanes_.at(KeyOf(node.FunctionOf(instance)));
    --lane.waiting;
    lane.queue->Remove(instance, node);
  }
  bool is_empty() const override { return lanes_.empty(); }

  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open,
                                const NodeState& node, TimePoint now) override {
    if (lanes_.size() == 1) return lanes_.begin()->second.queue->First(count, open, node, now);
    std::vector<InstanceId> first;
    for (auto lane = lanes_.begin(); lane != lanes_.end() && first.size() < count;) {
      const auto next = lanes_.lower_bound({lane->first.first + 1, TenantId{}});
      for (const InstanceId id : Interleave({lane, next}, count - first.size(), open, node, now)) {
        first.push_back(id);
      }
      lane = next;
    }
    return first;
  }

  bool IsBefore(const Instance& a, const Instance& b, const NodeState& node) const override {
    const Key key_of_a = KeyOf(node.FunctionOf(a));
    const Key key_of_b = KeyOf(node.FunctionOf(b));
    const auto lane_of_a = lanes_.find(key_of_a);
    const Lane& lane_of_b = lanes_.at(key_of_b);
    if (key_of_a == key_of_b) return lane_of_b.queue->IsBefore(a, b, node);
    const double used_by_a = lane_of_a == lanes_.end() ? 0 : lane_of_a->second.used;
    return std::tie(key_of_a.first, used_by_a) < std::tie(key_of_b.first, lane_of_b.used);
  }

  void OnOutcome(const Function& function, std::optional<bool> in_time, TimePoint now) override {
    LaneAt(KeyOf(function)).queue->OnOutcome(function, in_time, now);
  }

  void Forget(const Function& function) override {
    const auto lane = lanes_.find(KeyOf(function));
    if (lane == lanes_.end()) return;
    lane->second.queue->Forget(function);
    if (lane->second.queue->is_empty()) lanes_.erase(lane);
  }

  void OnLeaseEnded(const Function& function, double weight, Duration held) override {
    LaneAt(KeyOf(function)).used += ToSeconds(held) / weight;
  }

  std::optional<Standing> StandingOf(const Function& function) const override {
    const auto lane = lanes_.find(KeyOf(function));
    return lane == lanes_.end() ? std::nullopt : lane->second.queue->StandingOf(function);
  }

 private:
  // The highest priority is the least.
  using Key = std::pair<int, TenantId>;
  struct Lane {
    std::unique_ptr<QueuePolicy> queue;
    std::size_t waiting = 0;
    double used = 0;  // seconds of GPUs by weight
  };
  using Lanes = std::map<Key, Lane>;

  static Key KeyOf(const Function& function) { return {-function.priority, function.tenant}; }

  Lane& LaneAt(const Key& key) {
    Lane& lane = lanes_[key];
    if (!lane.queue) lane.queue = make_();
    return lane;
  }

  // Of the others of the same priority that wait.
  double LeastUsed(const Key& key) const {
    std::optional<double> least;
    for (const auto& [other, lane] : lanes_) {
      if (other == key || other.first != key.first || lane.waiting == 0) continue;
      least = std::min(least.value_or(lane.used), lane.used);
    }
    return least.value_or(0);
  }

  // Of the lanes of one priority, as if each that is taken from had used a GPU for as long.
  static std::vector<InstanceId> Interleave(std::pair<Lanes::iterator, Lanes::iterator> lanes,
                                            std::size_t count, const std::vector<GpuIndex>& open,
                                            const NodeState& node, TimePoint now) {
    constexpr double kSecondsOfRun = 0.02;
    std::vector<std::vector<InstanceId>> firsts;
    std::set<std::pair<double, std::size_t>> next;
    std::vector<double> steps;
    for (auto lane = lanes.first; lane != lanes.second; ++lane) {
      steps.push_back(kSecondsOfRun / node.WeightOf(lane->first.second));
      firsts.push_back(lane->second.queue->First(count, open, node, now));
      std::reverse(firsts.back().begin(), firsts.back().end());
      if (!firsts.back().empty()) next.emplace(lane->second.used, firsts.size() - 1);
    }
    std::vector<InstanceId> first;
    while (first.size() < count && !next.empty()) {
      const auto [used, lane] = *next.begin();
      next.erase(next.begin());
      first.push_back(firsts[lane].back());
      firsts[lane].pop_back();
      if (!firsts[lane].empty()) next.emplace(used + steps[lane], lane);
    }
    return first;
  }

  const QueueFactory make_;
  Lanes lanes_;
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeSharedQueue(QueueFactory make) {
  return std::make_unique<SharedQueue>(std::move(make));
}

}  // namespace torpor::scheduler
