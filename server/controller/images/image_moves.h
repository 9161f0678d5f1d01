#pragma once

#include "server/controller/images/image_swaps.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/session_table.h"

namespace torpor::server {

// Copies an image from one GPU to another over a fast link, and drops the first copy when all has
// arrived, unless that stays as a replica. On the controller's thread.
class ImageMoves {
 public:
  using OnDone = GpuExecutor::OnDone;

  // The arguments must outlive the object.
  ImageMoves(ExecutorTable& executors, ImageSwaps& swaps) : executors_(executors), swaps_(swaps) {}

  // Calls `arrived` with the outcome of the swap-in, then `left` when `from` holds nothing of the
  // image any more, with Lost if the executor there has died.
  void Move(const SessionPtr& session, GpuIndex from, GpuIndex to, const OnDone& arrived,
            const OnDone& left);
  // Calls `arrived` with the outcome of the swap-in. The copy on `from` stays.
  void Copy(const SessionPtr& session, GpuIndex from, GpuIndex to, const OnDone& arrived);

 private:
  ExecutorTable& executors_;
  ImageSwaps& swaps_;
};

}  // namespace torpor::server
