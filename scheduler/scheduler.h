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
#include "scheduler/request_queue.h"

namespace torpor::scheduler {

struct Options {
  // How long an implicit lease lasts at least while somebody waits for its GPU: a request, or
  // another program that wants an implicit lease. Else two would swap their images at every call.
  Duration implicit_quantum_for_request{std::chrono::milliseconds(5)};
  Duration implicit_quantum{std::chrono::milliseconds(100)};
  // How long a GPU must have had nothing to do before its images are written back; 0: never.
  Duration idle_write_back{};
  // Whether room is made by evicting others. Else requests are refused where there is none.
  bool evicts = true;
  // Whether images come from other GPUs where they may.
  bool swaps_from_peers = true;
  TooLate too_late = TooLate::kServe;
  std::size_t max_waiting = 0;  // more explicit requests are refused; 0: any number
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
//
// This class takes events apart and walks the queue. Its parts keep the books: requests
// (RequestQueue), images on GPUs (GpuImages), tenancies (Leases), and what is decided beside the
// queue (Growths, KeepAlives, LoadRequests, ColdStarts, IdleWriteBack).
class Scheduler {
 public:
  // A GPU may be free, or be so soon, and the first in the queue do not take it: they wait for a
  // better GPU, or its implicit lease has just begun. Whoever waits for either has asked to be
  // woken up. So many are asked at an event; instances behind them stand until then.
  static constexpr int kMaxPassedOver = 64;

  explicit Scheduler(Policies policies, Options options = {});
  // The parts refer to one another.
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // `now` never goes back. Events that no longer make sense (a swap of an executor that has gone)
  // are ignored; instances, functions and requests that an event names must be known (see
  // event_check.h).
  Actions OnEvent(const Event& event, TimePoint now);

  const NodeState& node() const { return node_; }

  // Requests that wait for a GPU, except implicit ones.
  std::size_t waiting() const { return queue_.waiting(); }

  // Whether an administrator's request to load the shard's image is still open and the image not
  // sent for.
  bool IsLoadWanted(InstanceId shard) const { return loads_.IsWanted(node_.instances.at(shard)); }

  bool IsBeyondRescue(FunctionId function) const {
    return policies_.queue->IsBeyondRescue(node_.functions.at(function));
  }

  // Where the function stands in the queue. Returns nullopt unless the queue orders by required
  // request count.
  std::optional<Standing> StandingOf(FunctionId function) const {
    return policies_.queue->StandingOf(node_.functions.at(function));
  }

 private:
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

  void OnSwappedIn(Instance& shard, GpuIndex gpu);
  void OnSwapInFailed(Instance& shard, GpuIndex gpu);
  // The instance that a new request goes to: the one it names, or the function's with the least to
  // do.
  Instance& InstanceFor(const RequestArrived& event);
  Request RequestOf(const RequestArrived& event, const Instance& instance);
  bool IsQueueFull(const Request& request) const;

  // --- scheduler_queue.cc: who gets which GPU ---
  // Walks the queue as long as there is a GPU that might be had: places instances for which GPUs
  // are free, revokes implicit leases for others. Stops at kMaxPassedOver instances that might have
  // such a GPU and have none yet.
  void ServeQueue();
  // Returns true if the instance needs no GPU any more: it has one, or its requests were refused.
  bool Serve(Instance& lead, std::set<GpuIndex>& claimed);
  // Makes implicit leases end for an instance that found no GPU for each shard. `claimed`: GPUs
  // that are, or become, free for others before it.
  void RevokeFor(Instance& lead, std::set<GpuIndex>& claimed);
  void ClaimGpu(const Request& request, const Instance& shard, std::set<GpuIndex>& claimed);
  // Instances wait by choice from one NoteChoice to the next EndChoices, which starts every event.
  void NoteChoice(Instance& lead);
  void EndChoices();

  Policies policies_;
  const Options options_;
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
