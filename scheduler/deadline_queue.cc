#include <tuple>
#include <unordered_map>

#include "scheduler/policies.h"
#include "scheduler/turn_queue.h"

namespace torpor::scheduler {
namespace {

class DeadlineQueue final : public QueuePolicy {
 public:
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

 private:
  using Key = std::tuple<bool, TimePoint, Turn>;

  static Key KeyOf(const Instance& instance, const NodeState& node) {
    const Request& first = node.FirstOf(instance);
    return {first.turn.is_late, first.deadline, first.turn};
  }

  TurnQueue<Key> waiting_;
  std::unordered_map<InstanceId, Key> keys_;
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeDeadlineQueue() { return std::make_unique<DeadlineQueue>(); }

}  // namespace torpor::scheduler
