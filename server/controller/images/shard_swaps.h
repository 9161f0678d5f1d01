#pragma once

#include <cstddef>
#include <cstdint>
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

  // Calls back with OK once the executor is ready; with Cancelled if the scheduler knows of its
  // loss.
  using Ensure = std::function<void(ExecutorKey, const std::function<void(const absl::Status&)>&)>;
  // An image has left the GPU.
  using OnLeft = std::function<void(GpuIndex)>;

  // The references must outlive the object.
  ShardSwaps(InstanceTable& instances, const SessionTable& sessions, ImageSwaps& swaps,
             ImageMoves& moves, const scheduler::Scheduler& scheduler, EventSink& events,
             Telemetry& telemetry, Ensure ensure, OnLeft left)
      : instances_(instances),
        sessions_(sessions),
        swaps_(swaps),
        moves_(moves),
        scheduler_(scheduler),
        events_(events),
        telemetry_(telemetry),
        ensure_(std::move(ensure)),
        left_(std::move(left)) {}

  // Each feeds the action's answering event when done, unless the executor dies first.
  void Apply(const scheduler::SwapIn& action);
  void Apply(const scheduler::SwapOut& action);
  void Apply(const scheduler::WriteBack& action);

  // The copies of a session's swap-in to `gpu` are done.
  void OnSwapInComplete(GpuIndex gpu, const v1::ExecutorMessage::SwapInComplete& what);

  // Since the daemon started.
  const Totals& totals() const { return totals_; }

 private:
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
  const Ensure ensure_;
  const OnLeft left_;
  Totals totals_;
};

}  // namespace torpor::server
