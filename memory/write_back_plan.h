#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/block_states.h"
#include "memory/extent_set.h"

namespace torpor::memory {

// Some of what is live: all up to `end`, which is where a block begins, or the end of everything.
struct WriteBackPart {
  static constexpr Bytes kEndOfAll = ~Bytes{0};

  ExtentSet live;
  Bytes end = kEndOfAll;
};

// What is live from `begin` on, up to the end of the block in which it comes to `max_bytes`.
WriteBackPart FirstPart(const ExtentSet& live, Bytes begin, Bytes max_bytes, Bytes block_bytes);

// The number of an image's block and the hash of the block's bytes on the GPU.
struct HashedBlock {
  std::size_t block = 0;
  std::uint64_t hash = 0;
};

// The copies from the GPU after which the host image equals the GPU's.
struct WriteBackPlan {
  std::vector<HashedBlock> stale;  // blocks with bytes to copy
  std::vector<Extent> copies;      // live bytes of stale blocks, ascending, neighbours joined
  std::size_t annex = 0;           // blocks whose copy goes to the annex: BlockStates::NeedsAnnex
};

// Plans the write-back of `live` bytes. `hashes` are hashes of the GPU's blocks, ascending; blocks
// without live bytes may be among them. `zero_hash` is the hash of a block of zeros: an unwritten
// block costs neither a copy nor host memory.
WriteBackPlan PlanWriteBack(const ExtentSet& live, std::span<const HashedBlock> hashes,
                            std::uint64_t zero_hash, BlockStates& states);

// Notes the stale blocks as changed, so that the copies may begin: beside the last checkpoint's
// bytes, in the annex at the first of `homes` (at least plan.annex) where a block needs one. The
// caller sets a block in step once its copy has arrived.
void BeginWriteBack(const WriteBackPlan& plan, std::span<const BlockHome> homes,
                    BlockStates& states);
// As BeginWriteBack, over the last checkpoint's bytes.
void BeginWriteBackInPlace(const WriteBackPlan& plan, BlockStates& states);

}  // namespace torpor::memory
