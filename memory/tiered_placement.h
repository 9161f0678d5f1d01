#pragma once

#include <optional>
#include <vector>

#include "memory/partition_table.h"
#include "memory/placement.h"

namespace torpor::memory {

// The paper's two tiers (A.2): partitions of fixed-size blocks and buddy partitions, an owner's
// blocks in as few of them as possible, so that its eviction frees whole ones.
//
// A block goes to a partition of the tier that suits it and that its owner has already; else to a
// free one as long as more than 1/kFreeShare of all are free; else between other owners' blocks,
// where it fits most tightly; else into another tier, which is better than to evict somebody: to
// the buddies, which waste nothing, or to the smallest slots that hold it.
class TieredPlacement final : public Placement {
 public:
  TieredPlacement(Bytes arena_bytes, PartitionSizes sizes);

  std::optional<Block> Take(const BlockRequest& request) override;
  std::optional<Block> TakeAt(const BlockRequest& request, Bytes offset) override;
  void Release(const BlockRequest& request, const Block& place) override;

  Bytes capacity() const override { return table_.capacity(); }
  Bytes free_bytes() const override { return table_.free_bytes(); }
  Bytes cached_bytes() const override {
    return capacity() - table_.free_bytes() - table_.taken_bytes();
  }
  Bytes largest_request() const override { return table_.largest_request(); }

  std::vector<Move> PlanMoves(const std::vector<PlacedBlock>& blocks, Bytes max_bytes) override;

 private:
  std::optional<PartitionTable::Index> Choose(const BlockRequest& request, Tier tier) const;
  std::optional<Block> TakeInAnyTier(const BlockRequest& request);
  std::optional<Block> TakeShared(const BlockRequest& request, Tier tier);

  // Free partitions are what large blocks are made of: the last of them are not for small ones.
  static constexpr PartitionTable::Index kFreeShare = 8;

  PartitionTable table_;
};

}  // namespace torpor::memory
