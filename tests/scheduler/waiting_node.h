#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/policies.h"

namespace torpor::scheduler {

// A node's picture made by hand, with functions of one instance each, of the same number; and a
// queue that is told what a scheduler would tell it.
class WaitingNode {
 public:
  explicit WaitingNode(std::unique_ptr<QueuePolicy> queue) : queue_(std::move(queue)) {}

  void AddFunction(std::uint64_t id, Objective objective = {});
  // The function has one request, which waits for a GPU since `arrival`.
  void Wait(std::uint64_t id, TimePoint arrival, TimePoint deadline = TimePoint::max());
  void Leave(std::uint64_t id);
  // It waits no longer, but has a GPU until it is released.
  void Serve(std::uint64_t id, TimePoint now);
  void Release(std::uint64_t id, TimePoint now);
  // As a FunctionSet changes it.
  void Change(std::uint64_t id, const std::function<void(FunctionState&)>& change);
  void Finish(std::uint64_t id, bool in_time, TimePoint now);
  bool IsWaiting(std::uint64_t id) {
    return node_.instances.at(InstanceId{id}).queued_as.has_value();
  }

  // The numbers of the first `count`.
  std::vector<std::uint64_t> First(std::size_t count, TimePoint now = {});

  NodeState& node() { return node_; }
  FunctionState& function(std::uint64_t id) { return node_.functions.at(FunctionId{id}); }
  Instance& instance(std::uint64_t id) { return node_.instances.at(InstanceId{id}); }
  QueuePolicy& queue() { return *queue_; }

 private:
  NodeState node_;
  std::unique_ptr<QueuePolicy> queue_;
  std::uint64_t next_ = 1;
  TimePoint now_{};
};

}  // namespace torpor::scheduler
