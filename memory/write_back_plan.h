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

// A block of an image, by its number, and the hash that it has on the GPU.
struct HashedBlock {
  std::size_t block = 0;
  std::uint64_t hash = 0;
};

// What to copy from the GPU so that the host image equals it.
struct WriteBackPlan {
  std::vector<HashedBlock> stale;  // blocks of which something has to be copied
  std::vector<Extent> copies;      // their live bytes, ascending, neighbours joined
};

// `hashes` are those of the GPU's blocks, ascending, of which some may hold nothing live;
// `zero_hash` is that of a block of zeros: one that nobody wrote costs neither a copy nor memory of
// the host. Blocks to be copied are noted as changed in `states`; once their copies have arrived
// the caller sets them in step.
WriteBackPlan PlanWriteBack(const ExtentSet& live, std::span<const HashedBlock> hashes,
                            std::uint64_t zero_hash, BlockStates& states);

}  // namespace torpor::memory
