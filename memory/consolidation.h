#pragma once

#include <vector>

#include "memory/partition_table.h"
#include "memory/placement.h"

namespace torpor::memory {

// Moves that make free partitions, or, where none can be made, bring those that are free together.
//
// The emptiest partitions of a tier are emptied first, into the fullest that have room, their
// owners' own if possible; only partitions that become empty altogether are touched. Once nothing
// can be gained so and the free partitions are not all neighbours, the highest partitions' blocks
// are moved, as they lie, to the smallest run of free partitions below them that holds them. What
// hangs together and is larger than `max_bytes` is never moved. Planned again and again until there
// are no moves it comes to an end.
//
// `blocks`, ascending, are all that hold places in `table`, which is afterwards as before.
std::vector<Move> PlanConsolidation(PartitionTable& table, const std::vector<PlacedBlock>& blocks,
                                    Bytes max_bytes);

}  // namespace torpor::memory
