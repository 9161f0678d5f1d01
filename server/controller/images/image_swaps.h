#pragma once

#include <functional>
#include <optional>

#include "server/controller/images/peer_access.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/image_return.h"
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
             PeerAccess& peers, ImageReturn& returns, Telemetry& telemetry, TaskLoop& loop,
             Task arrived)
      : executors_(executors),
        instances_(instances),
        sessions_(sessions),
        peers_(peers),
        returns_(returns),
        telemetry_(telemetry),
        loop_(loop),
        arrived_(std::move(arrived)) {}

  // Brings the image to `gpu`, by way of host memory if on the disk, and lets peers reach it.
  // Returns OK without an operation if the image is on `gpu` already or the session is closed or
  // lost; Lost if the present executor of `gpu` dies. An image on another GPU is written back and
  // stays there as a replica, which a later swap-in there only brings up to date; images that other
  // sessions may change leave instead. The bytes come from a replica on `source`, if there is one,
  // else from the host.
  void SwapIn(const SessionPtr& session, GpuIndex gpu, const OnDone& then,
              std::optional<GpuIndex> source = std::nullopt);
  // Does SwapIn for the session and all its peers, each to its own GPU of `lease`.
  void SwapInWithPeers(const SessionPtr& session, const InstanceLease& lease, const Task& then);
  // Writes changes made on `gpu` back: all, or a small part for kIdle (has_more of the result tells
  // whether changes are left). The image leaves the GPU if `reason` is kEviction or kMove, and so
  // does a replica, after the last copy from there. OK without an operation if `gpu` has neither.
  void SwapOut(const SessionPtr& session, GpuIndex gpu, WriteBackReason reason, const OnDone& then);

  // Drops all replicas: other sessions are about to reach the image.
  void DropReplicas(const SessionPtr& session);

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

  // Lets the GPU of the last swap-in let go of the source's memory; all has arrived.
  void ReleaseSource(const SessionPtr& session, const OnDone& then);

  // No copy to a GPU is under way any more: posts waiting tasks to the loop.
  void EndArrival(ClientSession& session);

  // Whether unsaved changes may be dropped with the GPU's copy.
  bool ForgetsChanges(const ClientSession& session) const;
  // Returns a session of the shard with changes to write back while `gpu` is idle, else null.
  SessionPtr UnsavedSessionOf(const Shard& shard, GpuIndex gpu) const;

 private:
  void SwapInNow(const SessionPtr& session, GpuIndex gpu, std::optional<GpuIndex> source,
                 const OnDone& then, const StepQueue::Finish& finish);
  // Whether the session is open and has use for its image on `gpu`, where it is not.
  bool IsNeededOn(const ClientSession& session, GpuIndex gpu) const;
  // The rest of a swap-in, with the image on no GPU.
  void Bring(const SessionPtr& session, GpuIndex gpu, std::optional<GpuIndex> source,
             const OnDone& then, const StepQueue::Finish& finish);
  // After a replica on `gpu` could not be brought up to date: from its beginning.
  void BringAnew(const SessionPtr& session, GpuIndex gpu, std::optional<GpuIndex> source,
                 const OnDone& then, const StepQueue::Finish& finish);
  v1::DaemonMessage SwapInMessage(ClientSession& session, GpuIndex gpu,
                                  std::optional<GpuIndex> source) const;
  v1::DaemonMessage SwapOutMessage(const ClientSession& session, WriteBackReason reason,
                                   bool drop) const;

  // Tells a client that records for a replay how far the image has come.
  void TellSaved(const ClientSession& session) const;

  // --- image_replicas.cc; all are parts of steps ---
  bool MayBeReplica(const ClientSession& session) const;
  // The image is to run on `gpu`: elsewhere, only replicas may be left.
  void LeaveOthers(const SessionPtr& session, GpuIndex gpu, const Task& then);
  void MakeReplica(const SessionPtr& session, const Task& then);
  void DropOthers(const SessionPtr& session, GpuIndex gpu, const Task& then);
  // After a failure waits until the executor, which is ending, has gone.
  void AwaitEnd(ExecutorKey executor, const OperationResult& outcome, const Task& then);
  // Brings a replica up to date, so that the image can be copied from there. Calls `then` without
  // the source if that is impossible.
  void PrepareSource(const SessionPtr& session, std::optional<GpuIndex> source,
                     const std::function<void(std::optional<GpuIndex>)>& then);
  void DropReplica(const SessionPtr& session, GpuIndex gpu, const OnDone& then);
  void DropReplicaNow(const SessionPtr& session, GpuIndex gpu, const OnDone& then);

  ExecutorTable& executors_;
  const InstanceTable& instances_;
  const SessionTable& sessions_;
  PeerAccess& peers_;
  ImageReturn& returns_;
  Telemetry& telemetry_;
  TaskLoop& loop_;
  const Task arrived_;
};

// Returns the GPU of `lease` for the session's device.
GpuIndex GpuOf(const InstanceLease& lease, const ClientSession& session);

}  // namespace torpor::server
