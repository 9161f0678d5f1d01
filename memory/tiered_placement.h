#pragma once

#include <optional>
#include <vector>

#include "memory/partition_table.h"
#include "memory/placement.h"

namespace torpor::memory {

// The paper's two tiers (A.2): partitions of fixed-size slots and buddy partitions, with an owner's
// blocks in as few partitions as possible, so that the owner's eviction frees whole partitions.
//
// Tries places for a block in this order: a partition of the suitable tier that the owner has
// already; a free partition if more than 1/kFreeShare of all are free; the tightest room among
// other owners' blocks; any free partition; another tier, which is better than an eviction: the
// buddies, which waste nothing, or the smallest slots with room.
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

  // Small blocks leave the last 1/kFreeShare of free partitions to large blocks.
  static constexpr PartitionTable::Index kFreeShare = 8;

  PartitionTable table_;
};

}  // namespace torpor::memory
