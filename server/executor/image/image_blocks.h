#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "memory/block_states.h"
#include "memory/extent_set.h"
#include "memory/write_back_plan.h"
#include "server/executor/gpu/shared_mapping.h"
#include "server/executor/image/block_hasher.h"
#include "server/executor/image/held_contents.h"
#include "server/executor/image/image_backing.h"

namespace torpor::executor {

// Block by block, whether a session's host image equals this GPU's memory, and which blocks were
// never written; all executors share the second part. Extents are bytes from the begin of the
// session's range. Also, which host bytes this GPU has got: another GPU may have changed the host
// image since. Forget comes from the thread that swaps, OnUpload and HasPending from the thread
// that executes commands, at any time; all other calls from one thread at a time.
class ImageBlocks {
 public:
  // The session's records of blocks, a mapping that may be in parts, and of its last checkpoint.
  struct Files {
    SharedMapping records;
    SharedMapping checkpoint;
  };

  // `keeps_checkpoints`: write-backs leave the last checkpoint's bytes alone until the next one;
  // before the first there are none.
  // `backing` and `hasher` must outlive this.
  ImageBlocks(Files files, bool keeps_checkpoints, const ImageBacking& backing,
              BlockHasher& hasher);

  memory::BlockStates& states() { return states_; }
  memory::Checkpoint checkpoint() const { return states_.checkpoint(); }

  // Maps the states of the blocks in the extent's chunks, which are the session's from now on. Call
  // before all calls with bytes of the extent.
  absl::Status MapStates(memory::Extent extent);

  // Begins a write-back: returns the copies that make the image equal to the GPU's memory, to the
  // blocks' present homes. `resident` is live on the GPU, and whole chunks are backed. Waits for
  // the work of `stream`.
  absl::StatusOr<memory::WriteBackPlan> BeginWriteBack(const memory::ExtentSet& resident,
                                                       CUstream stream);
  // Notes that the copies have arrived.
  void OnWrittenBack(const memory::WriteBackPlan& plan);
  // All blocks that differed are written back: makes the image the next checkpoint, with the work
  // of all commands up to `command`.
  void Commit(std::uint64_t command);
  // Returns to the last checkpoint, if another process died before it could commit. Call while this
  // GPU has no changes of its own. Returns the blocks, by number, whose own places the caller makes
  // zeros.
  std::vector<std::size_t> RollBack();
  // Whether RollBack would undo bytes of the extent: a write-back has been there since the last
  // checkpoint.
  bool HasPending(memory::Extent extent) const;

  // Notes that the host's bytes of the extent are about to be copied to the GPU, with all other
  // live bytes of blocks not in step.
  void OnArriving(memory::Extent extent);
  // Returns the parts of `resident` in blocks whose host bytes have changed, as far as known, since
  // they came to this GPU or were written back from there.
  memory::ExtentSet Stale(const memory::ExtentSet& resident) const;

  // Notes that the client's bytes are about to be copied to the extent.
  void OnUpload(memory::Extent extent) { states_.NoteUpload(extent); }
  // Forgets hashes: other memory than the hashed memory backs the extent now.
  void Forget(memory::Extent extent) { states_.Forget(extent); }

  // Returns the written bytes of the extent by origin.
  memory::MovedBytes ByOrigin(memory::Extent extent) const { return states_.ByOrigin(extent); }
  // Returns the written parts of `extent`, ascending; all other bytes are zero.
  std::vector<memory::Extent> Written(memory::Extent extent) const;
  // Returns the written parts of the whole image, ascending, and maps their states.
  absl::StatusOr<std::vector<memory::Extent>> AllWritten() const;

 private:
  // Notes that the GPU has the block's host bytes as they are now.
  void NoteHeld(std::size_t block);

  const Files files_;
  const bool keeps_checkpoints_;
  memory::BlockStates states_;
  memory::ExtentSet own_;             // the session's blocks, by number, in whole chunks
  std::vector<std::size_t> pending_;  // blocks written back here since the last checkpoint
  bool has_overwritten_ = false;      // since the last checkpoint
  const ImageBacking& backing_;
  BlockHasher& hasher_;
  HeldContents held_;
};

}  // namespace torpor::executor
