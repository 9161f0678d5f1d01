#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/policies.h"

namespace torpor::scheduler {

// Checks calls to a queue, and the answers of the queue behind, against the contract of
// QueuePolicy.
class CheckedQueue final : public QueuePolicy {
 public:
  using OnFault = std::function<void(const std::string&)>;

  CheckedQueue(std::unique_ptr<QueuePolicy> queue, OnFault on_fault)
      : queue_(std::move(queue)), on_fault_(std::move(on_fault)) {}

  void Add(const Instance& instance, const NodeState& node, TimePoint now) override {
    if (!waiting_.insert(instance.id).second) on_fault_("an instance is queued twice");
    queue_->Add(instance, node, now);
  }
  void Update(const Instance& instance, const NodeState& node) override {
    if (waiting_.count(instance.id) == 0) on_fault_("what is not queued is updated");
    queue_->Update(instance, node);
  }
  void Remove(const Instance& instance, const NodeState& node, TimePoint now) override {
    if (waiting_.erase(instance.id) == 0) on_fault_("what is not queued is removed");
    queue_->Remove(instance, node, now);
  }
  bool is_empty() const override { return queue_->is_empty(); }

  std::vector<InstanceId> First(std::size_t count, const std::vector<GpuIndex>& open,
                                const NodeState& node, TimePoint now) override {
    std::vector<InstanceId> first = queue_->First(count, open, node, now);
    const std::set<InstanceId> distinct(first.begin(), first.end());
    if (distinct.size() != first.size()) on_fault_("the queue names an instance twice");
    for (const InstanceId id : first) {
      if (waiting_.count(id) == 0) on_fault_("the queue names who does not wait");
    }
    const std::size_t most = std::min(count, waiting_.size());
    if (first.size() > most) on_fault_("the queue names more than it is asked for");
    if (open.empty() && first.size() < most) on_fault_("the queue leaves somebody out");
    return first;
  }
  bool IsBefore(const Instance& a, const Instance& b, const NodeState& node,
                TimePoint now) const override {
    if (waiting_.count(b.id) == 0) on_fault_("compared with who does not wait");
    return queue_->IsBefore(a, b, node, now);
  }

  void OnOutcome(const FunctionState& function, std::optional<bool> in_time,
                 TimePoint now) override {
    queue_->OnOutcome(function, in_time, now);
  }
  void Forget(const FunctionState& function) override { queue_->Forget(function); }
  void OnServed(const Instance& instance, const NodeState& node, TimePoint now) override {
    if (waiting_.count(instance.id) > 0) on_fault_("who is served still waits");
    if (!served_.insert(instance.id).second) on_fault_("an instance is served twice");
    queue_->OnServed(instance, node, now);
  }
  void OnJoined(const Instance& instance, const NodeState& node, TimePoint now) override {
    if (served_.count(instance.id) == 0) on_fault_("joins who is not served");
    queue_->OnJoined(instance, node, now);
  }
  void OnReleased(const Instance& instance, const NodeState& node, TimePoint now) override {
    if (served_.erase(instance.id) == 0) on_fault_("releases what is not served");
    queue_->OnReleased(instance, node, now);
  }
  bool IsBeyondRescue(const FunctionState& function) const override {
    return queue_->IsBeyondRescue(function);
  }
  std::optional<Standing> StandingOf(const FunctionState& function) const override {
    return queue_->StandingOf(function);
  }

 private:
  const std::unique_ptr<QueuePolicy> queue_;
  const OnFault on_fault_;
  std::set<InstanceId> waiting_;
  std::set<InstanceId> served_;
};

}  // namespace torpor::scheduler
