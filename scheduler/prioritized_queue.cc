#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "scheduler/policies.h"

namespace torpor::scheduler {
namespace {

class PrioritizedQueue final : public QueuePolicy {
 public:
  explicit PrioritizedQueue(QueueFactory make) : make_(std::move(make)) {}

  void Add(const Instance& instance, const NodeState& node) override {
    const int priority = node.FunctionOf(instance).priority;
    Level(priority).Add(instance, node);
    added_to_[instance.id] = priority;
  }
  void Remove(const Instance& instance) override {
    const auto added = added_to_.find(instance.id);
    Level(added->second).Remove(instance);
    added_to_.erase(added);
  }

  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open,
                                const NodeState& node, TimePoint now) override {
    std::vector<InstanceId> first;
    for (const auto& [priority, level] : levels_) {
      if (first.size() == count) break;
      const std::vector<InstanceId> more = level->First(count - first.size(), open, node, now);
      first.insert(first.end(), more.begin(), more.end());
    }
    return first;
  }

  bool IsBefore(const Instance& a, const Instance& b, const NodeState& node) const override {
    const int priority_of_a = node.FunctionOf(a).priority;
    const int priority_of_b = added_to_.at(b.id);
    if (priority_of_a != priority_of_b) return priority_of_a > priority_of_b;
    return levels_.at(priority_of_b)->IsBefore(a, b, node);
  }

  void OnOutcome(const Function& function, std::optional<bool> in_time, TimePoint now) override {
    Level(function.priority).OnOutcome(function, in_time, now);
  }

  std::optional<Standing> StandingOf(const Function& function) const override {
    const auto level = levels_.find(function.priority);
    return level == levels_.end() ? std::nullopt : level->second->StandingOf(function);
  }

 private:
  QueuePolicy& Level(int priority) {
    std::unique_ptr<QueuePolicy>& level = levels_[priority];
    if (!level) level = make_();
    return *level;
  }

  const QueueFactory make_;
  std::map<int, std::unique_ptr<QueuePolicy>, std::greater<>> levels_;
  // A function's priority may have changed since.
  std::unordered_map<InstanceId, int> added_to_;
};

}  // namespace

std::unique_ptr<QueuePolicy> MakePrioritizedQueue(QueueFactory make) {
  return std::make_unique<PrioritizedQueue>(std::move(make));
}

}  // namespace torpor::scheduler
