#pragma once

#include <vector>

#include "memory/partition_table.h"
#include "memory/placement.h"

namespace torpor::memory {

// Plans moves of at most `max_bytes` in sum that free partitions or, if no partition can be freed,
// bring free partitions together.
//
// Empties the emptiest partitions of a tier first, into the fullest partitions with room,
// preferably of the same owners; touches only partitions that become entirely empty. If no
// partition can be emptied and the free partitions are not all neighbours, moves the blocks of the
// highest partitions, as they lie, to the smallest sufficient run of free partitions below. Never
// moves blocks that hang together and are larger than `max_bytes`. Repeated planning and moving
// ends: at some point the plan is empty.
//
// `blocks`, ascending, are all blocks with places in `table`. Changes `table` while planning and
// restores the old state.
std::vector<Move> PlanConsolidation(PartitionTable& table, const std::vector<PlacedBlock>& blocks,
                                    Bytes max_bytes);

}  // namespace torpor::memory
