#include <tuple>
#include <unordered_map>

#include "scheduler/policies.h"
#include "scheduler/turn_queue.h"

namespace torpor::scheduler {
namespace {

class LatestStartQueue final : public QueuePolicy {
 public:
  explicit LatestStartQueue(LatestStartOptions options) : options_(options) {}

  void Add(const Instance& instance, const NodeState& node) override {
    const Key key = KeyOf(instance, node);
    keys_[instance.id] = key;
    waiting_.Add(instance, key);
  }
  void Remove(const Instance& instance) override {
    const auto key = keys_.find(instance.id);
    waiting_.Remove(instance, key->second);
    keys_.erase(key);
  }

  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open,
                                const NodeState&, TimePoint) override {
    return waiting_.First(count, open);
  }

  bool IsBefore(const Instance& a, const Instance& b, const NodeState& node) const override {
    return KeyOf(a, node) < KeyOf(b, node);
  }

  bool IsBeyondRescue(const Function& function) const override {
    return function.required_count() > options_.rescue_limit;
  }

 private:
  // Late, beyond rescue, latest start.
  using Key = std::tuple<bool, bool, TimePoint, Turn>;

  Key KeyOf(const Instance& instance, const NodeState& node) const {
    const Request& first = node.FirstOf(instance);
    const bool is_beyond_rescue = IsBeyondRescue(node.FunctionOf(instance));
    const bool has_deadline = first.deadline != TimePoint::max();
    const TimePoint latest_start =
        has_deadline ? first.deadline - node.ExpectedRun(instance) : first.deadline;
    return {first.turn.is_late, is_beyond_rescue, latest_start, first.turn};
  }

  const LatestStartOptions options_;
  TurnQueue<Key> waiting_;
  std::unordered_map<InstanceId, Key> keys_;
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeLatestStartQueue(LatestStartOptions options) {
  return std::make_unique<LatestStartQueue>(options);
}

}  // namespace torpor::scheduler
