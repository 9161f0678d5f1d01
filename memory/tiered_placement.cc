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
  return TakeInAnotherTier(request, tier);
}

std::optional<PartitionTable::Index> TieredPlacement::Choose(const BlockRequest& request,
                                                             Tier tier) const {
  const std::uint32_t room = table_.RoomFor(tier, request);
  if (const auto home = table_.FindHome(request.owner, tier, room)) return home;
  const bool has_many_free = table_.free_partitions() > table_.partitions() / kFreeShare;
  const auto shared = has_many_free ? std::nullopt : table_.FindShared(tier, room);
  return shared ? shared : table_.FindFree();
}

std::optional<Block> TieredPlacement::TakeInAnotherTier(const BlockRequest& request, Tier tier) {
  for (Tier other = 0; other <= table_.buddy_tier(); ++other) {
    if (other == tier || !table_.CanHold(other, request)) continue;
    const auto partition = table_.FindShared(other, table_.RoomFor(other, request));
    if (partition) return table_.TakeIn(*partition, other, request);
  }
  return std::nullopt;
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
