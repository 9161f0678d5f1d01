#pragma once

#include <type_traits>
#include <unordered_map>
#include <utility>

#include "scheduler/policies.h"
#include "scheduler/turn_queue.h"

namespace torpor::scheduler {

// The least key first. `KeyOf` is a pure function: `Key operator()(const Instance&, const
// NodeState&) const`; where it knows who is beyond rescue, it has an IsBeyondRescue as well.
template <typename KeyOf>
class KeyedQueue final : public QueuePolicy {
 public:
  explicit KeyedQueue(KeyOf key_of) : key_of_(std::move(key_of)) {}

  void Add(const Instance& instance, const NodeState& node, TimePoint) override {
    const Key key = key_of_(instance, node);
    keys_.emplace(instance.id, key);
    waiting_.Add(instance, key);
  }
  void Update(const Instance& instance, const NodeState& node) override {
    Key& key = keys_.at(instance.id);
    const Key now = key_of_(instance, node);
    if (now == key) return;
    waiting_.Remove(instance, key);
    key = now;
    waiting_.Add(instance, key);
  }
  void Remove(const Instance& instance, const NodeState&, TimePoint) override {
    const auto key = keys_.find(instance.id);
    waiting_.Remove(instance, key->second);
    keys_.erase(key);
  }
  bool is_empty() const override { return keys_.empty(); }

  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open,
                                const NodeState&, TimePoint) override {
    return waiting_.First(count, open);
  }

  bool IsBefore(const Instance& a, const Instance& b, const NodeState& node,
                TimePoint) const override {
    return key_of_(a, node) < key_of_(b, node);
  }

  bool IsBeyondRescue(const FunctionState& function) const override {
    if constexpr (requires { key_of_.IsBeyondRescue(function); }) {
      return key_of_.IsBeyondRescue(function);
    }
    return false;
  }

 private:
  using Key = std::invoke_result_t<KeyOf, const Instance&, const NodeState&>;

  const KeyOf key_of_;
  TurnQueue<Key> waiting_;
  std::unordered_map<InstanceId, Key> keys_;  // of those that wait
};

}  // namespace torpor::scheduler
