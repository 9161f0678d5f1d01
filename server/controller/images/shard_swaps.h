#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "scheduler/scheduler.h"
#include "server/controller/images/image_moves.h"
#include "server/controller/images/image_swaps.h"
#include "server/controller/model/event_sink.h"

namespace torpor::server {

// Carries out the scheduler's actions on shards' images, for all sessions of the shard, and reports
// completion to the scheduler. On the controller's thread.
class ShardSwaps {
 public:
  struct Totals {
    std::uint64_t swaps_in = 0;
    std::uint64_t swaps_out = 0;
  };

  // What it asks and tells of executors. None may be null.
  struct Executors {
    // Calls back with OK once the executor is ready; with Cancelled if the GPU is down, as the
    // scheduler knows.
    std::function<void(ExecutorKey, const std::function<void(const absl::Status&)>&)> ensure;
    // As DomainSeats::Require.
    std::function<bool(ExecutorKey)> require;
    // An image has left the GPU.
    std::function<void(GpuIndex)> left;
  };

  // The references must outlive the object.
  ShardSwaps(InstanceTable& instances, const SessionTable& sessions, ImageSwaps& swaps,
             ImageMoves& moves, const scheduler::Scheduler& scheduler, EventSink& events,
             Telemetry& telemetry, Executors executors)
      : instances_(instances),
        sessions_(sessions),
        swaps_(swaps),
        moves_(moves),
        scheduler_(scheduler),
        events_(events),
        telemetry_(telemetry),
        executors_(std::move(executors)) {}

  // Each feeds the action's answering event when done, unless the executor dies first.
  void Apply(const scheduler::SwapIn& action);
  void Apply(const scheduler::SwapOut& action);
  void Apply(const scheduler::WriteBack& action);

  // The copies of a session's swap-in to `gpu` are done.
  void OnSwapInComplete(GpuIndex gpu, const v1::ExecutorMessage::SwapInComplete& what);

  // Since the daemon started.
  const Totals& totals() const { return totals_; }

 private:
  // Whether the GPU is held for the swap-in.
  bool IsForLease(const scheduler::SwapIn& action) const;
  bool AreServed(const std::set<DomainId>& domains, GpuIndex gpu) const;
  // The scheduler has been told that the instance cannot have the GPU now.
  void Postpone(const scheduler::SwapIn& action);
  // With the executors ready.
  void Begin(const scheduler::SwapIn& action);
  void OnSwapInDone(const scheduler::SwapIn& action, const absl::Status& status);
  // Returns a callback to be called `count` times; the last success feeds SwapOutDone.
  GpuExecutor::OnDone WhenLeft(InstanceId shard, GpuIndex gpu, std::size_t count);
  // Feeds ImageArrived if the scheduler waits for it and no copy of the shard is under way.
  void NoteArrival(InstanceId shard, GpuIndex gpu);

  InstanceTable& instances_;
  const SessionTable& sessions_;
  ImageSwaps& swaps_;
  ImageMoves& moves_;
  const scheduler::Scheduler& scheduler_;
  EventSink& events_;
  Telemetry& telemetry_;
  const Executors executors_;
  Totals totals_;
};

}  // namespace torpor::server
