#pragma once

#include <functional>

#include "server/controller/images/peer_access.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/task_loop.h"
#include "server/controller/model/telemetry.h"

namespace torpor::server {

// Brings images of single sessions to GPUs, writes changes back, and drops images from GPUs. Every
// operation is a step of its session, in the order of the calls. On the controller's thread.
class ImageSwaps {
 public:
  using OnDone = GpuExecutor::OnDone;
  using Task = std::function<void()>;

  // Posts `arrived` to the loop whenever an image's arrival has ended. The arguments must outlive
  // the object.
  ImageSwaps(ExecutorTable& executors, const InstanceTable& instances, const SessionTable& sessions,
             PeerAccess& peers, Telemetry& telemetry, TaskLoop& loop, Task arrived)
      : executors_(executors),
        instances_(instances),
        sessions_(sessions),
        peers_(peers),
        telemetry_(telemetry),
        loop_(loop),
        arrived_(std::move(arrived)) {}

  // Brings the image to `gpu` and lets peers reach it. Returns OK without an operation if the image
  // is on `gpu` already or the session is closed or lost; Lost if the present executor of `gpu`
  // dies.
  void SwapIn(const SessionPtr& session, GpuIndex gpu, const OnDone& then);
  // Does SwapIn for the session and all its peers, each to its own GPU of `lease`.
  void SwapInWithPeers(const SessionPtr& session, const InstanceLease& lease, const Task& then);
  // Writes changes made on `gpu` back: all, or a small part for kIdle (has_more of the result tells
  // whether changes are left). The image leaves the GPU if `reason` is kEviction or kMove. OK
  // without an operation if the image is not on `gpu`.
  void SwapOut(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason, const OnDone& then);

  // Adds a step for the present executor of `gpu`. If a successor has started before the step
  // begins, drops the step and calls `then` with Lost.
  void AddStep(const SessionPtr& session, GpuIndex gpu, const OnDone& then,
               const StepQueue::Step& step);
  // The rest of a step: SwapOut of an image on `gpu`. Without `drop` the image stays.
  void WriteBack(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason, bool drop,
                 const OnDone& then, const StepQueue::Finish& finish);
  // The rest of a step: withdraws the image from peers, then drops it from `gpu`.
  void Leave(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason, const OnDone& then,
             const StepQueue::Finish& finish);

  // No copy to a GPU is under way any more: posts waiting tasks to the loop.
  void EndArrival(ClientSession& session);

  // Whether unsaved changes may be dropped with the GPU's copy.
  bool ForgetsChanges(const ClientSession& session) const;
  // Returns a session of the shard with changes to write back while `gpu` is idle, else null.
  SessionPtr UnsavedSessionOf(const Shard& shard, GpuIndex gpu) const;

 private:
  void SwapInNow(const SessionPtr& session, GpuIndex gpu, const OnDone& then,
                 const StepQueue::Finish& finish);
  v1::DaemonMessage SwapInMessage(ClientSession& session) const;
  v1::DaemonMessage SwapOutMessage(const ClientSession& session, WriteBackReason reason,
                                   bool drop) const;

  ExecutorTable& executors_;
  const InstanceTable& instances_;
  const SessionTable& sessions_;
  PeerAccess& peers_;
  Telemetry& telemetry_;
  TaskLoop& loop_;
  const Task arrived_;
};

// Returns the GPU of `lease` for the session's device.
GpuIndex GpuOf(const InstanceLease& lease, const ClientSession& session);

}  // namespace torpor::server
