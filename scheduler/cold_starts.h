#pragma once

#include <unordered_map>

#include "scheduler/binding_policy.h"
#include "scheduler/gpu_images.h"
#include "scheduler/node_state.h"
#include "scheduler/outbox.h"
#include "scheduler/policies.h"
#include "scheduler/request_queue.h"

namespace torpor::scheduler {

// Brings the images that cold instances wait for, beside whatever the GPUs run; see
// MakeResidentBinding. A failed start is tried again after a pause that doubles, kMaxTries in all.
// Not thread-safe.
class ColdStarts {
 public:
  static constexpr int kMaxTries = 4;
  static constexpr Duration kFirstPause = std::chrono::milliseconds(100);

  ColdStarts(NodeState& node, const BindingPolicy& binding, PlacementPolicy& placement,
             RequestQueue& queue, GpuImages& images, Outbox& outbox);

  // Goes through RequestQueue::cold.
  void Serve();
  // A swap-in has failed. Returns false unless the instance waits for a cold start. Refuses its
  // requests after the last try.
  bool OnSwapInFailed(Instance& instance);

 private:
  struct Failures {
    int in_a_row = 0;
    TimePoint next_try{};
  };

  // Returns true if the instance needs no start any more.
  bool Start(Instance& instance);

  NodeState& node_;
  const BindingPolicy& binding_;
  PlacementPolicy& placement_;
  RequestQueue& queue_;
  GpuImages& images_;
  Outbox& outbox_;
  std::unordered_map<InstanceId, Failures> failures_;
};

}  // namespace torpor::scheduler
