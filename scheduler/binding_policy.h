#pragma once

#include <memory>
#include <optional>

#include "scheduler/node_state.h"

namespace torpor::scheduler {

// Decides to which GPU an instance is bound, from when and for how long. `Instance::bound_gpu` is
// set by the caller to what the policy returns. The defaults bind nothing: late binding.
class BindingPolicy {
 public:
  virtual ~BindingPolicy() = default;

  // False: no instance is ever bound, and every GPU will do for every instance.
  virtual bool binds() const { return false; }

  // Whether a shard that is no larger than the GPU may run on it. Returns nullopt if the binding
  // leaves that to the room on the GPU.
  virtual std::optional<bool> MayRunOn(const Instance& /*shard*/, const Gpu&) const {
    return std::nullopt;
  }

  // Whether a request of the instance waits for the image before it stands in the queue.
  virtual bool IsCold(const Instance& /*lead*/) const { return false; }

  // Whether the binding leaves room for `bytes` more of the shard's image.
  virtual bool MayGrow(const Instance& /*shard*/, Bytes, const NodeState&) const { return true; }

  // The GPU, if any, to which the shard is bound from now on. OnGrowing: its image grows by `bytes`
  // after the call, and MayGrow was true. OnArriving: its image begins to come to `gpu`. OnLeft: a
  // copy has gone from a GPU.
  virtual std::optional<GpuIndex> OnGrowing(const Instance& shard, Bytes /*bytes*/,
                                            const NodeState&) {
    return shard.bound_gpu;
  }
  virtual std::optional<GpuIndex> OnArriving(const Instance& shard, GpuIndex /*gpu*/) const {
    return shard.bound_gpu;
  }
  virtual std::optional<GpuIndex> OnLeft(const Instance& shard) const { return shard.bound_gpu; }

  // The shard's image has become smaller by `bytes`.
  virtual void OnShrunk(const Instance& /*shard*/, Bytes /*bytes*/) {}
};

// At each request, to whichever GPU is free.
std::unique_ptr<BindingPolicy> MakeLateBinding();

// For ever, to the GPU with the most memory that is not bound yet, when the image gets its first
// bytes. Shards of one instance are bound to GPUs of their own. For the simulator's `native` and
// `non-swap`.
std::unique_ptr<BindingPolicy> MakeEarlyBinding();

// To the GPU that the image is on, or comes to, for as long as it is there. The image of an
// instance with one GPU comes ahead of its requests, while the GPU runs others. For the simulator's
// `keep-alive`.
std::unique_ptr<BindingPolicy> MakeResidentBinding();

}  // namespace torpor::scheduler
