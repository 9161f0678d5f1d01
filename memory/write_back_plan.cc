#include "memory/write_back_plan.h"

namespace torpor::memory {
namespace {

void Append(std::vector<Extent>& extents, Extent next) {
  if (!extents.empty() && extents.back().end == next.begin) {
    extents.back().end = next.end;
  } else {
    extents.push_back(next);
  }
}

// Whether the host's bytes equal the GPU's. Sets a block that was zeros all along in step.
bool IsInStep(const HashedBlock& block, std::uint64_t zero_hash, BlockStates& states) {
  if (states.IsInStep(block.block, block.hash)) return true;
  if (block.hash != zero_hash || states.origin(block.block) != BlockOrigin::kUntouched) {
    return false;
  }
  states.SetInStep(block.block, block.hash);
  return true;
}

// Returns the offset at which live bytes from `begin` on sum up to `max_bytes`.
Bytes EndOf(const std::vector<Extent>& live, Bytes max_bytes) {
  for (const Extent& extent : live) {
    if (extent.bytes() >= max_bytes) return extent.begin + max_bytes;
    max_bytes -= extent.bytes();
  }
  return WriteBackPart::kEndOfAll;
}

}  // namespace

WriteBackPart FirstPart(const ExtentSet& live, Bytes begin, Bytes max_bytes, Bytes block_bytes) {
  WriteBackPart part;
  const Bytes end = EndOf(live.Within({begin, WriteBackPart::kEndOfAll}), max_bytes);
  const Bytes block_end = end == WriteBackPart::kEndOfAll ? end : RoundUp(end, block_bytes);
  for (const Extent& extent : live.Within({begin, block_end})) part.live.Add(extent);
  const bool is_last = live.Within({block_end, WriteBackPart::kEndOfAll}).empty();
  part.end = is_last ? WriteBackPart::kEndOfAll : block_end;
  return part;
}

WriteBackPlan PlanWriteBack(const ExtentSet& live, std::span<const HashedBlock> hashes,
                            std::uint64_t zero_hash, BlockStates& states) {
  WriteBackPlan plan;
  for (const HashedBlock& block : hashes) {
    if (IsInStep(block, zero_hash, states)) continue;
    const Bytes begin = block.block * states.block_bytes();
    const std::vector<Extent> parts = live.Within({begin, begin + states.block_bytes()});
    if (parts.empty()) continue;
    if (states.NeedsAnnex(block.block)) ++plan.annex;
    plan.stale.push_back(block);
    for (const Extent& part : parts) Append(plan.copies, part);
  }
  return plan;
}

void BeginWriteBack(const WriteBackPlan& plan, std::span<const BlockHome> homes,
                    BlockStates& states) {
  for (const HashedBlock& block : plan.stale) {
    const bool takes_annex = states.NeedsAnnex(block.block);
    states.NoteChanged(block.block, takes_annex ? homes.front() : kOwnPlace);
    if (takes_annex) homes = homes.subspan(1);
  }
}

void BeginWriteBackInPlace(const WriteBackPlan& plan, BlockStates& states) {
  for (const HashedBlock& block : plan.stale) states.NoteOverwritten(block.block);
}

}  // namespace torpor::memory
