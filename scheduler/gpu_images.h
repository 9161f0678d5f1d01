#pragma once

#include <optional>

#include "scheduler/binding_policy.h"
#include "scheduler/node_state.h"
#include "scheduler/outbox.h"
#include "scheduler/policies.h"
#include "scheduler/request_queue.h"

namespace torpor::scheduler {

// Images on GPUs: resident, arriving, leaving, and replicas. Keeps every GPU's account of bytes and
// swaps and order of eviction, and emits SwapIn, SwapOut and WriteBack. Not thread-safe; all
// arguments must outlive the object.
class GpuImages {
 public:
  struct Options {
    bool evicts = true;            // whether room is made by evicting
    bool swaps_from_peers = true;  // whether images come from other GPUs
  };

  GpuImages(NodeState& node, const EvictionPolicy& eviction, BindingPolicy& binding,
            RequestQueue& queue, Options options, Outbox& outbox);

  bool evicts() const { return options_.evicts; }

  // Returns true if `bytes` are free now. Otherwise evicts until `bytes` will be free once all
  // leaving copies have left, or until nothing evictable remains.
  bool MakeRoom(Gpu& gpu, Bytes bytes);
  // Takes the next step to bring an image, absent from `gpu`, there: evicts, drops the image from
  // other GPUs, or begins the swap-in. Returns whether the swap-in has begun.
  bool Bring(Instance& shard, Gpu& gpu);
  // Begins the swap-in from the host. The GPU must have room and no copy of the image.
  void SwapIn(Instance& shard, Gpu& gpu);
  // Begins the eviction of a present copy without lease and readers.
  void SwapOut(Instance& shard, GpuIndex gpu, SwapOutReason reason);
  // SwapOut for every copy of an idle instance that may go.
  void SwapOutAll(Instance& lead, SwapOutReason reason);
  // The same on one GPU, whose tenant the instance is not.
  void SwapOutFrom(Instance& lead, GpuIndex gpu, SwapOutReason reason);

  // Answers to the above. The copy must be coming, or there.
  void OnPresent(Instance& shard, GpuIndex gpu);
  // The GPU holds nothing of the image any more.
  void Drop(Instance& shard, GpuIndex gpu);

  // Accounts for a grown or shrunk image, on the node and on GPUs where the image stays.
  void Grow(Instance& shard, Bytes bytes);
  void Shrink(Instance& shard, Bytes bytes);

  // A lease may change the copy on the tenancy's GPU from now on.
  void OnGranted(Instance& shard);
  // Writes back a part of the first image of the GPU's `unsaved`, which must not be empty; and the
  // answer.
  void WriteBackFirst(Gpu& gpu);
  void OnWrittenBack(Instance& shard, GpuIndex gpu, bool is_clean);

  // To be called after a change of phase, pin, use or run times, on which eviction order depends.
  void Rank(Instance& shard);

 private:
  // Whether the image stays where it was when it goes to another GPU. An instance that is bound has
  // use for one GPU only.
  bool KeepsReplicas(const Instance& shard) const;
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
