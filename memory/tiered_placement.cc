#include "memory/tiered_placement.h"

#include <utility>

#include "memory/consolidation.h"

namespace torpor::memory {

TieredPlacement::TieredPlacement(Bytes arena_bytes, PartitionSizes sizes)
    : table_(arena_bytes, std::move(sizes)) {}

std::optional<Block> TieredPlacement::Take(const BlockRequest& request) {
  const Tier tier = table_.TierOf(request);
  if (tier == PartitionTable::kRun) return table_.TakeRun(request);
  if (const auto partition = Choose(request, tier)) {
    return table_.TakeIn(*partition, tier, request);
  }
  return TakeInAnyTier(request);
}

std::optional<PartitionTable::Index> TieredPlacement::Choose(const BlockRequest& request,
                                                             Tier tier) const {
  const std::uint32_t room = table_.RoomFor(tier, request);
  if (const auto home = table_.FindHome(request.owner, tier, room)) return home;
  const bool has_many_free = table_.free_partitions() > table_.partitions() / kFreeShare;
  const auto shared = has_many_free ? std::nullopt : table_.FindShared(tier, room);
  return shared ? shared : table_.FindFree();
}

std::optional<Block> TieredPlacement::TakeInAnyTier(const BlockRequest& request) {
  if (auto block = TakeShared(request, table_.buddy_tier())) return block;
  for (Tier slots = 0; slots < table_.buddy_tier(); ++slots) {
    if (auto block = TakeShared(request, slots)) return block;
  }
  return std::nullopt;
}

std::optional<Block> TieredPlacement::TakeShared(const BlockRequest& request, Tier tier) {
  if (!table_.CanHold(tier, request)) return std::nullopt;
  const auto partition = table_.FindShared(tier, table_.RoomFor(tier, request));
  return partition ? table_.TakeIn(*partition, tier, request) : std::nullopt;
}

std::optional<Block> TieredPlacement::TakeAt(const BlockRequest& request, Bytes offset) {
  return table_.TakeAt(request, offset);
}

void TieredPlacement::Release(const BlockRequest& request, const Block& place) {
  table_.Release(request, place);
}

std::vector<Move> TieredPlacement::PlanMoves(const std::vector<PlacedBlock>& blocks,
                                             Bytes max_bytes) {
  return PlanConsolidation(table_, blocks, max_bytes);
}

}  // namespace torpor::memory
