#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "scheduler/cold_starts.h"
#include "scheduler/events.h"
#include "scheduler/gpu_choice.h"
#include "scheduler/gpu_images.h"
#include "scheduler/growths.h"
#include "scheduler/idle_write_back.h"
#include "scheduler/keep_alives.h"
#include "scheduler/leases.h"
#include "scheduler/load_requests.h"
#include "scheduler/outbox.h"
#include "scheduler/policies.h"
#include "scheduler/policy_constants.h"
#include "scheduler/request_queue.h"

namespace torpor::scheduler {

struct SchedulerOptions {
  // How long an implicit lease lasts at least while a request, or another program that wants an
  // implicit lease, waits for the GPU. Without a quantum two programs would swap at every call.
  Duration implicit_quantum_for_request{std::chrono::milliseconds(5)};
  Duration implicit_quantum{std::chrono::milliseconds(100)};
  // How long a GPU must be idle before images there are written back; 0: never.
  Duration idle_write_back{};
  // Whether room is made by evicting. Without eviction, requests without room are refused.
  bool evicts = true;
  // Whether images come from other GPUs over NVLinks.
  bool swaps_from_peers = true;
  TooLate too_late = TooLate::kServe;
  std::size_t max_waiting = 0;  // more explicit requests are refused; 0: any number
  PolicyConstants constants{};  // of the policies, too
};

// Decides which request runs on which GPU, what is evicted and what waits. A deterministic state
// machine without clock, thread or I/O: the same events at the same times give the same actions.
// Not thread-safe.
//
// Every request is granted or refused unless RequestGone comes first; every growth is answered. The
// caller's part: every action is answered by an event, revoked leases end, and a GPU that goes down
// comes back.
//
// An event costs O(log n) in instances and waiting requests, O(i) in instances of a function, O(t)
// in tenants, and O(g) in GPUs, times kMaxPassedOver for a free GPU that no instance takes.
// ExecutorUp and ExecutorDown cost more, and so do images too large for the free GPU.
//
// This class interprets events and walks the queue. The parts keep the books: requests
// (RequestQueue), images on GPUs (GpuImages), tenancies (Leases), and decisions beside the queue
// (Growths, KeepAlives, LoadRequests, ColdStarts, IdleWriteBack).
class Scheduler {
 public:
  // Instances asked at an event whether a free or soon free GPU will do. The first in the queue may
  // decline: to wait for a better GPU, or because the implicit lease there has just begun. Each has
  // then asked for a WakeUp; instances further back stand until the next event.
  static constexpr int kMaxPassedOver = 64;

  explicit Scheduler(Policies policies, SchedulerOptions options = {});
  // The parts refer to one another.
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // `now` never goes back. Outdated events (a swap of an executor that has gone) are ignored.
  // Instances, functions and requests named in an event must be known (see event_check.h).
  Actions OnEvent(const Event& event, TimePoint now);

  const NodeState& node() const { return node_; }

  // Explicit requests that wait for a GPU.
  std::size_t waiting() const { return queue_.waiting(); }

  // Whether InstanceRemoved may come for the instance. O(n) in requests.
  bool MayRemove(InstanceId lead) const;

  // Whether a load of the shard's image is open, and the image not sent for.
  bool IsLoadWanted(InstanceId shard) const { return loads_.IsWanted(node_.instances.at(shard)); }

  bool IsBeyondRescue(FunctionId function) const {
    return policies_.queue->IsBeyondRescue(node_.functions.at(function));
  }

  // The function's place by required request count. Returns nullopt if the queue orders otherwise.
  std::optional<Standing> StandingOf(FunctionId function) const {
    return policies_.queue->StandingOf(node_.functions.at(function));
  }

 private:
  void Handle(const ExecutorUp& event);
  void Handle(const ExecutorDown& event);
  void Handle(const ImagesLost& event);
  void Handle(const InstancesServed& event);
  // The GPU holds nothing any more of a copy that came, was there, or left.
  void LoseImage(Instance& shard, GpuIndex gpu);
  void Handle(const TenantSet& event);
  void Handle(const FunctionSet& event);
  void Handle(const InstanceAdded& event);
  void Handle(const HealthChanged& event);
  void Handle(const InstanceRemoved& event);
  void Handle(const FunctionRemoved& event);
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
  void Handle(const ImagesUnwanted& event);
  void Handle(const PinChanged& event);
  void Handle(const ImageSpilled& event);
  void Handle(const TimePassed& event);

  void OnSwappedIn(Instance& shard, GpuIndex gpu);
  void OnSwapInFailed(Instance& shard, GpuIndex gpu);
  // Returns the function's state, made if the function is new.
  FunctionState& FunctionFor(FunctionId id);
  // The instance named in the event, or the function's instance for the request.
  Instance& InstanceFor(const RequestArrived& event);
  Request RequestOf(const RequestArrived& event, const Instance& instance);
  bool IsQueueFull(const Request& request) const;
  // Takes a request, if there is one, out of the queue or of its lease, and forgets it.
  void TakeBack(RequestId id);

  // --- scheduler_queue.cc: who gets which GPU ---
  // Walks the queue while a GPU is or may become free: places instances, or revokes implicit leases
  // for instances without a free GPU. Stops after kMaxPassedOver instances that declined.
  void ServeQueue();
  // Returns true if the instance was placed or all of the waiting requests refused.
  bool Serve(Instance& lead, std::set<GpuIndex>& claimed);
  // Makes implicit leases end for an instance that found too few GPUs. `claimed`: GPUs kept for
  // instances further ahead; the instance's are added.
  void RevokeFor(Instance& lead, std::set<GpuIndex>& claimed);
  void ClaimGpu(const Request& request, const Instance& shard, std::set<GpuIndex>& claimed);
  // Instances wait by choice from one NoteChoice to the next EndChoices, which starts every event.
  void NoteChoice(Instance& lead);
  void EndChoices();

  Policies policies_;
  const SchedulerOptions options_;
  NodeState node_;
  Outbox outbox_;
  RequestQueue queue_;
  GpuImages images_;
  GpuChoice choice_;
  KeepAlives keep_alives_;
  Growths growths_;
  LoadRequests loads_;
  ColdStarts cold_starts_;
  IdleWriteBack idle_write_back_;
  Leases leases_;
  std::set<InstanceId> choosing_;  // instances that wait by choice
  std::uint64_t next_sequence_ = 1;
};

}  // namespace torpor::scheduler
