#include "server/executor/image/image_blocks.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "proto/wire/descriptor_socket.h"

namespace torpor::executor {
namespace {

std::span<memory::BlockRecord> Records(const SharedMapping& mapping) {
  return {reinterpret_cast<memory::BlockRecord*>(mapping.data()),
          mapping.bytes() / memory::BlockStates::kBytesPerBlock};
}

memory::CheckpointRecord& RecordOf(const SharedMapping& mapping) {
  return *reinterpret_cast<memory::CheckpointRecord*>(mapping.data());
}

// Returns the blocks that overlap the extents (ascending), each once.
std::vector<memory::HashedBlock> BlocksOf(const std::vector<memory::Extent>& extents) {
  std::vector<memory::HashedBlock> blocks;
  for (const memory::Extent& extent : extents) {
    for (std::size_t i = extent.begin / wire::kImageBlockBytes;
         i * wire::kImageBlockBytes < extent.end; ++i) {
      if (blocks.empty() || blocks.back().block < i) blocks.push_back({i, 0});
    }
  }
  return blocks;
}

std::vector<BlockRun> RunsOf(const std::vector<memory::HashedBlock>& blocks,
                             const ImageBacking& backing) {
  std::vector<BlockRun> runs;
  for (const memory::HashedBlock& block : blocks) {
    const CUdeviceptr address = backing.AddressOf(block.block * wire::kImageBlockBytes);
    const bool is_next =
        !runs.empty() &&
        runs.back().address + runs.back().blocks * wire::kImageBlockBytes == address;
    if (is_next) {
      ++runs.back().blocks;
    } else {
      runs.push_back({address, 1});
    }
  }
  return runs;
}

}  // namespace

ImageBlocks::ImageBlocks(Files files, bool keeps_checkpoints, const ImageBacking& backing,
                         BlockHasher& hasher)
    : files_(std::move(files)),
      keeps_checkpoints_(keeps_checkpoints),
      states_(Records(files_.records), RecordOf(files_.checkpoint), wire::kImageBlockBytes),
      backing_(backing),
      hasher_(hasher) {}

absl::Status ImageBlocks::MapStates(memory::Extent extent) {
  // A block outside of all allocations keeps a home and a version as long as the block's chunk has
  // an allocation, and executors that have never had the block must know.
  const Bytes unit = backing_.chunk_bytes();
  const Bytes all = states_.blocks() * wire::kImageBlockBytes;
  const memory::Extent chunks{RoundDown(extent.begin, unit),
                              std::min(RoundUp(extent.end, unit), all)};
  own_.Add({chunks.begin / wire::kImageBlockBytes, chunks.end / wire::kImageBlockBytes});
  return files_.records.Ensure(memory::BlockStates::StatesOf(chunks, wire::kImageBlockBytes));
}

absl::StatusOr<memory::WriteBackPlan> ImageBlocks::BeginWriteBack(const memory::ExtentSet& resident,
                                                                  CUstream stream) {
  std::vector<memory::HashedBlock> blocks = BlocksOf(resident.extents());
  TORPOR_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> hashes,
                          hasher_.Hash(RunsOf(blocks, backing_), stream));
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].hash = hashes[i];
  memory::WriteBackPlan plan =
      memory::PlanWriteBack(resident, blocks, hasher_.zero_hash(), states_);
  if (keeps_checkpoints_ && checkpoint().number() > 0) {
    memory::BeginWriteBack(plan, memory::FreeAnnexHomes(states_, own_, plan.annex), states_);
    for (const memory::HashedBlock& block : plan.stale) pending_.push_back(block.block);
  } else {
    if (!plan.stale.empty()) {
      checkpoint().NoteOverwritten();
      has_overwritten_ = true;
    }
    memory::BeginWriteBackInPlace(plan, states_);
  }
  // The hash of a block to be copied is unknown until OnWrittenBack.
  for (const memory::HashedBlock& block : blocks) NoteHeld(block.block);
  return plan;
}

void ImageBlocks::OnWrittenBack(const memory::WriteBackPlan& plan) {
  for (const memory::HashedBlock& block : plan.stale) {
    states_.SetInStep(block.block, block.hash);
    NoteHeld(block.block);
  }
}

void ImageBlocks::Commit(std::uint64_t command) {
  const bool has_written = !pending_.empty() || has_overwritten_;
  // Of a replica, whose image another GPU may be writing back.
  if (!has_written && command <= checkpoint().saved_command()) return;
  checkpoint().Commit(command);
  for (const std::size_t block : pending_) states_.Retire(block);
  pending_.clear();
  has_overwritten_ = false;
}

std::vector<std::size_t> ImageBlocks::RollBack() {
  std::vector<std::size_t> to_clear;
  if (!checkpoint().is_exceeded()) return to_clear;
  for (const memory::Extent& blocks : own_.extents()) {
    for (std::size_t block = blocks.begin; block < blocks.end; ++block) {
      if (states_.RollBack(block)) to_clear.push_back(block);
    }
  }
  checkpoint().NoteUndone();
  pending_.clear();
  return to_clear;
}

bool ImageBlocks::HasPending(memory::Extent extent) const {
  if (!checkpoint().is_exceeded()) return false;
  for (std::size_t i = extent.begin / wire::kImageBlockBytes;
       i * wire::kImageBlockBytes < extent.end; ++i) {
    if (states_.IsPending(i)) return true;
  }
  return false;
}

void ImageBlocks::NoteHeld(std::size_t block) {
  held_.Note(block, states_.content(block).value_or(memory::BlockStates::kNoContent));
}

void ImageBlocks::OnArriving(memory::Extent extent) {
  for (std::size_t i = extent.begin / wire::kImageBlockBytes;
       i * wire::kImageBlockBytes < extent.end; ++i) {
    NoteHeld(i);
  }
}

memory::ExtentSet ImageBlocks::Stale(const memory::ExtentSet& resident) const {
  memory::ExtentSet stale;
  for (const memory::HashedBlock& each : BlocksOf(resident.extents())) {
    if (states_.content(each.block) == held_.Of(each.block)) continue;
    const Bytes begin = each.block * wire::kImageBlockBytes;
    for (const memory::Extent& part : resident.Within({begin, begin + wire::kImageBlockBytes})) {
      stale.Add(part);
    }
  }
  return stale;
}

std::vector<memory::Extent> ImageBlocks::Written(memory::Extent extent) const {
  std::vector<memory::Extent> written;
  for (std::size_t i = extent.begin / wire::kImageBlockBytes;
       i * wire::kImageBlockBytes < extent.end; ++i) {
    if (states_.origin(i) == memory::BlockOrigin::kUntouched) continue;
    const Bytes begin = std::max(i * wire::kImageBlockBytes, extent.begin);
    const Bytes end = std::min((i + 1) * wire::kImageBlockBytes, extent.end);
    if (!written.empty() && written.back().end == begin) {
      written.back().end = end;
    } else {
      written.push_back({begin, end});
    }
  }
  return written;
}

absl::StatusOr<std::vector<memory::Extent>> ImageBlocks::AllWritten() const {
  constexpr Bytes kRecord = memory::BlockStates::kBytesPerBlock;
  std::vector<memory::Extent> written;
  for (const memory::Extent& records : files_.records.WithPages()) {
    TORPOR_RETURN_IF_ERROR(files_.records.Ensure(records));
    const std::vector<memory::Extent> parts =
        Written({records.begin / kRecord * wire::kImageBlockBytes,
                 records.end / kRecord * wire::kImageBlockBytes});
    written.insert(written.end(), parts.begin(), parts.end());
  }
  return written;
}

}  // namespace torpor::executor
