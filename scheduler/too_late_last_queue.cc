#include <unordered_set>

#include "scheduler/policies.h"
#include "scheduler/turn_queue.h"

namespace torpor::scheduler {
namespace {

class TooLateLastQueue final : public QueuePolicy {
 public:
  explicit TooLateLastQueue(std::unique_ptr<QueuePolicy> inner) : inner_(std::move(inner)) {}

  void Add(const Instance& instance, const NodeState& node) override {
    inner_->Add(instance, node);
  }

  void Remove(const Instance& instance) override {
    if (is_late_.erase(instance.id) > 0) return late_.Remove(instance, *instance.queued_as);
    inner_->Remove(instance);
  }

  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open,
                                const NodeState& node, TimePoint now) override {
    for (;;) {
      std::vector<InstanceId> first = inner_->First(count, open, node, now);
      if (SetLateAside(first, node, now)) continue;
      if (first.size() == count) return first;
      const std::vector<InstanceId> late = late_.First(count - first.size(), open);
      first.insert(first.end(), late.begin(), late.end());
      return first;
    }
  }

  bool IsBefore(const Instance& a, const Instance& b, const NodeState& node) const override {
    const bool is_b_late = is_late_.count(b.id) > 0;
    return is_b_late ? a.waiting.begin()->first < b.waiting.begin()->first
                     : inner_->IsBefore(a, b, node);
  }

  void OnOutcome(const Function& function, std::optional<bool> in_time, TimePoint now) override {
    inner_->OnOutcome(function, in_time, now);
  }

  std::optional<Standing> StandingOf(const Function& function) const override {
    return inner_->StandingOf(function);
  }

 private:
  // Whether there were any.
  bool SetLateAside(const std::vector<InstanceId>& first, const NodeState& node, TimePoint now) {
    bool were_any = false;
    for (const InstanceId id : first) {
      const Instance& instance = node.instances.at(id);
      const Duration shortest = node.FunctionOf(instance).run_times.shortest();
      if (now + shortest <= node.FirstOf(instance).deadline) continue;
      if (node.FirstOf(instance).is_implicit) continue;
      inner_->Remove(instance);
      is_late_.insert(id);
      late_.Add(instance, *instance.queued_as);
      were_any = true;
    }
    return were_any;
  }

  const std::unique_ptr<QueuePolicy> inner_;
  TurnQueue<Turn> late_;
  std::unordered_set<InstanceId> is_late_;
};

}  // namespace

std::unique_ptr<QueuePolicy> MakeTooLateLastQueue(std::unique_ptr<QueuePolicy> inner) {
  return std::make_unique<TooLateLastQueue>(std::move(inner));
}

}  // namespace torpor::scheduler
