#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "memory/block_states.h"
#include "memory/extent_set.h"
#include "memory/write_back_plan.h"
#include "server/executor/gpu/shared_mapping.h"
#include "server/executor/image/block_hasher.h"
#include "server/executor/image/image_backing.h"

namespace torpor::executor {

// What this executor finds out, and all executors know, of a session's host image, block by block:
// whether it equals the GPU's memory, and which blocks nobody has written. Extents are bytes from
// the begin of the session's range. Forget comes from the
// thread that swaps, OnUpload from the one that executes commands, at any time; the rest from one
// thread at a time.
class ImageBlocks {
 public:
  // `states`: the session's file of block states. The others outlive this.
  ImageBlocks(SharedMapping states, const ImageBacking& backing, BlockHasher& hasher);

  // What to copy so that the image equals the GPU's memory, of which `resident` is live and whole
  // chunks are backed. Waits for the work of `stream`.
  absl::StatusOr<memory::WriteBackPlan> PlanWriteBack(const memory::ExtentSet& resident,
                                                      CUstream stream);
  // Its copies have arrived.
  void OnWrittenBack(const memory::WriteBackPlan& plan);

  // The client's bytes are about to be copied there.
  void OnUpload(memory::Extent extent) { states_.NoteUpload(extent); }
  // The GPU's memory there is another than what hashes were made of.
  void Forget(memory::Extent extent) { states_.Forget(extent); }

  // How many of the extent's bytes somebody has written, and who.
  memory::MovedBytes ByOrigin(memory::Extent extent) const { return states_.ByOrigin(extent); }
  // Parts of `extent`, ascending, that somebody has written; the rest is zeros.
  std::vector<memory::Extent> Written(memory::Extent extent) const;

 private:
  const SharedMapping mapping_;
  memory::BlockStates states_;
  const ImageBacking& backing_;
  BlockHasher& hasher_;
};

}  // namespace torpor::executor
