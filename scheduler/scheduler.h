#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/events.h"
#include "scheduler/policies.h"

namespace torpor::scheduler {

struct Options {
  // How long an implicit lease lasts at least if somebody waits for its GPU: a request, or another
  // program that wants an implicit lease. Else two would swap their images at every call.
  Duration implicit_quantum_for_request{std::chrono::milliseconds(5)};
  Duration implicit_quantum{std::chrono::milliseconds(100)};
  // How long a GPU must have had nothing to do before its images are written back; 0: never.
  Duration idle_write_back{};
};

// Decides who runs where, what is evicted and who waits. A deterministic state machine: no clock,
// no thread, no I/O; the same events at the same times give the same actions. Not thread-safe.
//
// Every request is granted or refused unless it goes before; every growth is answered. That holds
// as long as every action is answered by its event, leases that are revoked end, and a GPU that
// goes down comes back.
class Scheduler {
 public:
  explicit Scheduler(Policies policies, Options options = {});

  // `now` never goes back. Events that no longer make sense (a swap of an executor that has gone)
  // are ignored.
  Actions OnEvent(const Event& event, TimePoint now);

  const NodeState& node() const { return node_; }

 private:
  struct Growth {
    GrowthId id;
    InstanceId instance;
    Bytes bytes = 0;
  };

  void Handle(const ExecutorUp& event);
  void Handle(const ExecutorDown& event);
  void Handle(const InstanceAdded& event);
  void Handle(const RequestArrived& event);
  void Handle(const RequestGone& event);
  void Handle(const SwapInDone& event);
  void Handle(const SwapOutDone& event);
  void Handle(const WriteBackDone& event);
  void Handle(const LeaseEnded& event);
  void Handle(const GrowthWanted& event);
  void Handle(const ImageShrunk& event);
  void Handle(const LoadWanted& event);
  void Handle(const EvictionWanted& event);
  void Handle(const PinChanged& event);
  void Handle(const TimePassed& event);

  // Goes through the queue: places whom a GPU is free for, revokes implicit leases for the rest.
  void ServeQueue();
  bool RefuseIfTooLarge(const Request& request, const Instance& instance);
  // The instance and its companions. Whatever belongs to a lease is the leader's alone, but for
  // the phase, which all share.
  std::vector<Instance*> MembersOf(const Instance& leader);
  Instance& LeaderOf(InstanceId member);
  void SetPhase(const Instance& leader, Instance::Phase phase);
  // Gives every member a GPU outside of `claimed`, or none to any.
  bool Place(Instance& leader, const std::set<GpuIndex>& claimed);
  std::optional<GpuIndex> ChooseGpu(const Instance& member, const std::set<GpuIndex>& taken);
  // Lets the request run under the lease that its instance has, if it may.
  bool Join(const Request& request, Instance& instance);
  // Makes implicit leases end for `request`, which found no GPU for each member. `claimed`: GPUs
  // that are, or become, free for requests before it.
  void RevokeFor(const Request& request, const Instance& leader, std::set<GpuIndex>& claimed);
  void ClaimGpu(const Request& request, const Instance& member, std::set<GpuIndex>& claimed);
  bool MayRevoke(const Request& request, const Instance& holder);
  void EmitRevoke(Instance& instance);
  // Asks for a WakeUp then, or earlier.
  void WakeAt(TimePoint when);

  // Takes a tenant as near to its lease as it gets without waiting. Idempotent.
  void Advance(Instance& member);
  bool IsPresent(const Instance& member) const;
  void GrantFirstWaiting(Instance& leader);
  const Request* FirstWaiting(InstanceId instance);
  void EndTenancy(Instance& leader);

  // True where `bytes` are free now. Else evicts until, once all that leaves has left, they will
  // be, as far as there is anything to evict.
  bool MakeRoom(Gpu& gpu, Bytes bytes);
  // What will be free once all that leaves has left.
  Bytes FreeLater(const Gpu& gpu) const;
  // Takes an image that is not on its way to `gpu` nearer to that. True once it comes.
  bool Bring(Instance& member, Gpu& gpu);
  // Where on another GPU it had better come from than from the host.
  std::optional<GpuIndex> SourceOf(const Instance& member, const Gpu& gpu) const;
  void EmitSwapOut(Instance& instance, GpuIndex gpu, SwapOutReason reason);
  void Drop(Instance& instance, GpuIndex gpu);
  void Charge(Instance& instance, GpuIndex gpu, Bytes bytes);

  // Goes through the images that an administrator wants on a GPU.
  void ServeLoads();
  // True where nothing is left to do for it.
  bool Load(Instance& member);
  std::optional<GpuIndex> ChooseLoadGpu(const Instance& member);

  void NoteIdleGpus();
  // The GPUs with a swap under way.
  std::set<GpuIndex> SwappingGpus() const;
  // Images, one at a time a GPU, of GPUs that have been idle for long enough.
  void SaveIdleImages();
  void SaveImageOf(const Gpu& gpu);

  void RetryGrowths();
  // True where the growth was answered.
  bool TryGrow(const Growth& growth);
  Bytes LargestCapacity() const;

  Policies policies_;
  const Options options_;
  NodeState node_;
  std::vector<Growth> growths_;  // that wait for room, oldest first
  std::optional<TimePoint> wake_up_;
  std::uint64_t next_sequence_ = 1;
  TimePoint now_{};
  Actions actions_;
};

}  // namespace torpor::scheduler
