#pragma once

#include "server/controller/images/image_swaps.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/session_table.h"

namespace torpor::server {

// Moves an image from one GPU to another over a fast link: writes it back, copies it from GPU to
// GPU, and drops the first copy when all has arrived. On the controller's thread.
class ImageMoves {
 public:
  using OnDone = GpuExecutor::OnDone;

  // The arguments must outlive the object.
  ImageMoves(ExecutorTable& executors, const SessionTable& sessions, ImageSwaps& swaps)
      : executors_(executors), sessions_(sessions), swaps_(swaps) {}

  // Calls `arrived` with the outcome of the swap-in, then `left` when `from` holds nothing of the
  // image any more, with Lost if the executor there has died.
  void Move(const SessionPtr& session, GpuIndex from, GpuIndex to, const OnDone& arrived,
            const OnDone& left);

 private:
  // Makes an image on `gpu` a source. An image reached by other sessions leaves instead.
  void PrepareSource(const SessionPtr& session, GpuIndex gpu);
  void PrepareSourceNow(const SessionPtr& session, GpuIndex gpu, const StepQueue::Finish& finish);
  void LeaveSource(const SessionPtr& session, GpuIndex from, GpuIndex to, const OnDone& left);
  // All has arrived: drops the source once `to` has let go of it.
  void ReleaseSource(const SessionPtr& session, GpuIndex from, GpuIndex to, const OnDone& left);
  void DropSource(const SessionPtr& session, GpuIndex gpu, const OnDone& left);

  ExecutorTable& executors_;
  const SessionTable& sessions_;
  ImageSwaps& swaps_;
};

}  // namespace torpor::server
