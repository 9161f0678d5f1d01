#pragma once

#include <optional>

#include "scheduler/binding_policy.h"
#include "scheduler/node_state.h"
#include "scheduler/outbox.h"
#include "scheduler/policies.h"
#include "scheduler/request_queue.h"

namespace torpor::scheduler {

// Images on GPUs: resident, arriving, leaving, and replicas. Keeps every GPU's account of bytes and
// swaps and its order of eviction, and emits SwapIn, SwapOut and WriteBack. Not thread-safe; all
// that it is given must outlive it.
class GpuImages {
 public:
  struct Options {
    bool evicts = true;            // whether room is made by evicting others
    bool swaps_from_peers = true;  // whether images come from other GPUs where they may
  };

  GpuImages(NodeState& node, const EvictionPolicy& eviction, BindingPolicy& binding,
            RequestQueue& queue, Options options, Outbox& outbox);

  bool evicts() const { return options_.evicts; }

  // Returns true if `bytes` are free now. Else evicts until they will be once all that leaves has
  // left, or nothing evictable is there.
  bool MakeRoom(Gpu& gpu, Bytes bytes);
  // Takes the next step to bring an image to `gpu` that is not on its way there: evicts, has it
  // leave other GPUs, or begins the swap-in. Returns whether the swap-in has begun.
  bool Bring(Instance& shard, Gpu& gpu);
  // Begins to bring the image from the host, where there is room and no copy of it.
  void SwapIn(Instance& shard, Gpu& gpu);
  // Begins the eviction of a present copy that no lease and no other copy needs.
  void SwapOut(Instance& shard, GpuIndex gpu, SwapOutReason reason);
  // SwapOut for every copy of an idle instance that may go.
  void SwapOutAll(Instance& lead, SwapOutReason reason);

  // Answers to the above. The copy must be coming, or there.
  void OnPresent(Instance& shard, GpuIndex gpu);
  // The GPU holds nothing of the image any more.
  void Drop(Instance& shard, GpuIndex gpu);

  // Accounts for an image that has become larger or smaller, on the GPUs that it stays on too.
  void Grow(Instance& shard, Bytes bytes);
  void Shrink(Instance& shard, Bytes bytes);

  // The shard's copy on its tenancy's GPU may be changed from now on.
  void OnGranted(Instance& shard);
  // Writes back a part of the image that is first in the GPU's `unsaved` order, which must not be
  // empty; and its answer.
  void WriteBackFirst(Gpu& gpu);
  void OnWrittenBack(Instance& shard, GpuIndex gpu, bool is_clean);

  // To be called when what the eviction order depends on has changed: phase, pin, use, run times.
  void Rank(Instance& shard);

 private:
  // The GPU to copy the image from; nullopt if it comes from the host.
  std::optional<GpuIndex> SourceOf(const Instance& shard, const Gpu& gpu) const;
  void BeginSwapIn(Instance& shard, Gpu& gpu, std::optional<GpuIndex> source);
  void SetState(Instance& shard, GpuIndex at, Copy::State state);
  void EndReading(Instance& shard, GpuIndex reader);

  NodeState& node_;
  const EvictionPolicy& eviction_;
  BindingPolicy& binding_;
  RequestQueue& queue_;
  const Options options_;
  Outbox& outbox_;
};

}  // namespace torpor::scheduler
