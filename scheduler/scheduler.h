#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "scheduler/events.h"
#include "scheduler/policies.h"

namespace torpor::scheduler {

// When instances are bound to GPUs. Late: at each request, to whichever is free. Early: for ever,
// to the one with the most unbound memory, when they first have an image. While resident: at a
// request for one whose image is on no GPU, and as long as it is there; the GPU runs others while
// it comes.
enum class Binding { kLate, kEarly, kWhileResident };

// Served in their turn; when nobody waits who can be answered in time; or refused.
enum class TooLate { kServe, kServeLast, kRefuse };

struct Options {
  // How long an implicit lease lasts at least if somebody waits for its GPU: a request, or another
  // program that wants an implicit lease. Else two would swap their images at every call.
  Duration implicit_quantum_for_request{std::chrono::milliseconds(5)};
  Duration implicit_quantum{std::chrono::milliseconds(100)};
  // How long a GPU must have had nothing to do before its images are written back; 0: never.
  Duration idle_write_back{};
  Binding binding = Binding::kLate;
  // Whether room is made by evicting others. Else requests are refused where there is none.
  bool evicts = true;
  // Whether images come from other GPUs where they may.
  bool swaps_from_peers = true;
  // What becomes of requests that cannot be answered in time any more.
  TooLate too_late = TooLate::kServe;
  std::size_t max_waiting = 0;  // further explicit requests are refused; 0: any number
};

// Decides who runs where, what is evicted and who waits. A deterministic state machine: no clock,
// no thread, no I/O; the same events at the same times give the same actions. Not thread-safe.
//
// Every request is granted or refused unless it goes before; every growth is answered. That holds
// as long as every action is answered by its event, leases that are revoked end, and a GPU that
// goes down comes back.
//
// An event costs O(log n) in instances and waiting requests, O(i) in instances of a function, O(t)
// in tenants, and O(g) in GPUs, of which each may be free for kMaxPassedOver who do not take it.
// ExecutorUp and ExecutorDown cost more, and images that are too large for the GPU that is free.
class Scheduler {
 public:
  // A GPU may be free, or be so soon, and the first in the queue do not take it: they wait for a
  // better one, or its implicit lease has just begun. Whoever waits for either has asked to be
  // woken up, and so many are asked at an event; others stand behind them until then.
  static constexpr int kMaxPassedOver = 64;

  explicit Scheduler(Policies policies, Options options = {});

  // `now` never goes back. Events that no longer make sense (a swap of an executor that has gone)
  // are ignored.
  Actions OnEvent(const Event& event, TimePoint now);

  const NodeState& node() const { return node_; }

  // Requests that wait for a GPU, but for implicit ones.
  std::size_t waiting() const { return waiting_; }

  bool IsBeyondRescue(FunctionId function) const {
    return policies_.queue->IsBeyondRescue(node_.functions.at(function));
  }

  // Where the function stands in the queue, if that orders by required request count.
  std::optional<Standing> StandingOf(FunctionId function) const {
    return policies_.queue->StandingOf(node_.functions.at(function));
  }

 private:
  struct Growth {
    GrowthId id;
    InstanceId instance;
    Bytes bytes = 0;
  };

  void Handle(const ExecutorUp& event);
  void Handle(const ExecutorDown& event);
  void Handle(const TenantSet& event);
  void Handle(const FunctionSet& event);
  void Handle(const InstanceAdded& event);
  void Handle(const RequestArrived& event);
  void Handle(const RequestGone& event);
  void Handle(const SwapInDone& event);
  void Handle(const ImageArrived& event);
  void Handle(const SwapOutDone& event);
  void Handle(const WriteBackDone& event);
  void Handle(const LeaseEnded& event);
  void Handle(const GrowthWanted& event);
  void Handle(const ImageShrunk& event);
  void Handle(const LoadWanted& event);
  void Handle(const EvictionWanted& event);
  void Handle(const PinChanged& event);
  void Handle(const TimePassed& event);

  // --- scheduler.cc: instances and their tenancies ---
  // The instance and its companions. Whatever belongs to a lease is the leader's alone, but for
  // the phase, which all share.
  template <typename Do>
  void ForEachMember(Instance& leader, const Do& with_member) {
    with_member(leader);
    for (const InstanceId id : leader.companions) with_member(node_.instances.at(id));
  }
  Instance& LeaderOf(InstanceId member);
  void SetPhase(Instance& leader, Instance::Phase phase);
  // Takes tenants as near to their leases as they get without waiting. Idempotent.
  void AdvanceTenants();
  void Advance(Instance& member);
  bool IsComplete(Instance& leader);
  void Grant(Instance& leader);
  void NoteUse(Instance& member);
  void EndTenancy(Instance& leader);
  void EmitRevoke(Instance& instance);
  // Asks for a WakeUp then, or earlier.
  void WakeAt(TimePoint when);

  // --- scheduler_requests.cc: requests, until they have a GPU and when they are over ---
  Instance& InstanceFor(const RequestArrived& event);
  std::optional<Refusal> ReasonToRefuse(const Request& request) const;
  void Enqueue(const Request& request);
  // Takes it out of its instance's waiting ones.
  void Unqueue(const Request& request);
  // Takes one that was granted out of its lease, if that has not ended.
  void TakeBack(RequestId request);
  void RefuseWaiting(RequestId request, Refusal reason);
  void RefuseAllWaiting(Instance& leader, Refusal reason);
  // Brings the queue in step with what waits for the instance, and its phase.
  void UpdateQueue(Instance& leader);
  // Brings its turn in step with where its image is and what is known of its function.
  void UpdateTurn(const Instance& instance);
  void UpdateTurns(const Function& function);
  // Lets an instance that has nothing to do serve what waits for another of its function.
  void TakeFromSibling(Instance& leader);
  void Count(const Request& request, bool in_time);
  // Those that do not count any more.
  void ForgetOutcomes();
  void LearnRunTime(const Instance& leader);
  bool IsTooLarge(Instance& leader);
  bool IsTooLate(const Instance& leader) const;
  // Does with a first request that is too late what is to be done then. False where nothing is.
  bool StepAside(Instance& leader);

  // --- scheduler_queue.cc: who gets which GPU ---
  // Goes through the queue as long as there is a GPU that might be had: places whom one is free
  // for, revokes implicit leases for others. Stops at kMaxPassedOver that might have such a GPU
  // and have none yet.
  void ServeQueue();
  // Whether its image has to come before it stands in the queue.
  bool IsCold(const Instance& leader) const;
  // Has the images brought that cold instances wait for.
  void StartCold();
  // True unless something is still in the way.
  bool StartCold(Instance& instance);
  // Tries again after a pause, or refuses who waits for it.
  void OnColdStartFailed(Instance& instance);
  // GPUs that are free, become so, or have an implicit lease, but for those of `claimed`.
  std::vector<GpuIndex> OpenGpus(const std::set<GpuIndex>& claimed) const;
  // True where the instance needs no GPU any more: it has one, or its requests were refused.
  bool Serve(Instance& leader, std::set<GpuIndex>& claimed);
  // Nobody waits by choice any more, until that is decided again.
  void EndChoices();
  void NoteChoice(Instance& leader);
  // Has the scheduler woken up while an instance that waits by choice can still be in time.
  void LookAgain(const Instance& leader);
  // Gives every member a GPU outside of `claimed`, or none to any.
  bool Place(Instance& leader, const std::set<GpuIndex>& claimed);
  // In which they choose their GPUs: who is on one already is not driven from it by one who may go
  // to any, nor, where nothing is evicted, the larger from the only one with room by the smaller.
  std::vector<Instance*> MembersInOrder(Instance& leader);
  std::optional<GpuIndex> ChooseGpu(const Instance& member, const std::set<GpuIndex>& taken);
  bool MayRunOn(const Instance& member, const Gpu& gpu) const;
  bool MayRunOnAny(const Instance& leader, const std::vector<GpuIndex>& gpus) const;
  // Whether waiting can help: there is a GPU for each member, busy or not, that it may run on.
  bool MayRunAnywhere(Instance& leader);
  // Makes implicit leases end for an instance that found no GPU for each member. `claimed`: GPUs
  // that are, or become, free for others before it.
  void RevokeFor(Instance& leader, std::set<GpuIndex>& claimed);
  void ClaimGpu(const Request& request, const Instance& member, std::set<GpuIndex>& claimed);
  bool MayRevoke(const Request& request, const Instance& holder);
  // Lets requests run under the lease that their instance has, or ends that for them.
  void ServeTenants();
  // True where one of its requests runs now, or is no longer its first.
  bool Join(Instance& leader);

  // --- scheduler_memory.cc: images on GPUs ---
  // True where `bytes` are free now. Else evicts until, once all that leaves has left, they will
  // be, as far as there is anything to evict.
  bool MakeRoom(Gpu& gpu, Bytes bytes);
  // Takes an image that is not on its way to `gpu` nearer to that. True once it comes.
  bool Bring(Instance& member, Gpu& gpu);
  // Where on another GPU it had better come from than from the host.
  std::optional<GpuIndex> SourceOf(const Instance& member, const Gpu& gpu) const;
  void EmitSwapIn(Instance& member, Gpu& gpu, std::optional<GpuIndex> source);
  void EmitSwapOut(Instance& instance, GpuIndex gpu, SwapOutReason reason);
  void SetCopyState(Instance& instance, GpuIndex gpu, Copy::State state);
  void Drop(Instance& instance, GpuIndex gpu);
  void Charge(Instance& instance, GpuIndex gpu, Bytes bytes);
  void Discharge(Instance& instance, GpuIndex gpu, Bytes bytes);
  void EndReading(Instance& instance, GpuIndex reader);
  // Brings the orders of eviction in step with the instance.
  void Rank(Instance& instance);
  void RetryGrowths();
  // True where the growth was answered.
  bool TryGrow(const Growth& growth);
  bool HasBoundRoom(const Instance& instance, Bytes bytes) const;
  void BindEarly(Instance& instance, Bytes bytes);
  void Bind(Instance& instance, std::optional<GpuIndex> gpu);
  std::optional<GpuIndex> RoomiestFor(const Instance& instance, Bytes bytes) const;
  Bytes LargestCapacity() const;
  // Evicts what has not been used for its function's keep_alive.
  void EndKeepAlives();
  // Notes when that will be, if the instance is not used again.
  void NoteKeepAlive(Instance& leader);

  // --- scheduler_hints.cc: what an administrator asks for ---
  // Goes through the instances that are wanted on GPUs.
  void ServeLoads();
  // True where nothing is left to do for it.
  bool Load(Instance& leader);
  void ForgetLoad(Instance& leader);
  void EmitRefuseLoad(Instance& leader, LoadRefusal reason);
  std::optional<LoadRefusal> ReasonNotToLoad(const Instance& leader) const;
  // True once it is decided for every member.
  bool ChooseLoadGpus(Instance& leader);
  std::optional<GpuIndex> ChooseLoadGpu(const Instance& member, const std::set<GpuIndex>& taken);
  // Whether the image is there, or evictions can make room for it now.
  bool HasRoomToLoad(const Instance& member, const Gpu& gpu) const;
  bool LoadMember(Instance& member);

  // --- scheduler_idle.cc: what GPUs do that have nothing to do ---
  void NoteIdleGpus();
  // Whether somebody waits for a GPU and could have this one.
  bool IsWanted(const Gpu& gpu);
  // Images, one at a time a GPU, of GPUs that have been idle for long enough.
  void SaveIdleImages();
  void SaveImageOf(Gpu& gpu);

  Policies policies_;
  const Options options_;
  NodeState node_;
  std::size_t queued_ = 0;             // instances in the queue
  std::size_t waiting_ = 0;            // explicit requests
  std::vector<Growth> growths_;        // that wait for room, oldest first
  std::set<InstanceId> cold_;          // that wait for their images to come
  std::set<InstanceId> choosing_;      // that wait by choice
  std::set<InstanceId> wanted_loads_;  // of administrators; leaders
  absl::btree_set<std::pair<TimePoint, InstanceId>> keep_alive_ends_;
  // When something is to be forgotten.
  absl::btree_set<std::pair<TimePoint, FunctionId>> outcome_ends_;
  std::optional<TimePoint> wake_up_;
  bool is_waiting_better_ = false;  // the placement's last word was so
  std::uint64_t next_sequence_ = 1;
  TimePoint now_{};
  Actions actions_;
};

}  // namespace torpor::scheduler
