#pragma once

#include <cstdint>

#include "emulator/ptx/lane_shape.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

// Whether all member lanes, named by the last operand, execute the instruction together: shfl.sync,
// vote.sync, match.sync, redux.sync, elect.sync.
bool IsCollective(const Instruction& instruction);

// Writes out how the members of a collective operation wait for each other, each at its own
// instruction in whatever branch. Returns function `index` of the module, in which an operation
// that lanes may run while others of their warp are elsewhere becomes
//
//         converge SLOW, members;      // goes there unless all members are here
//         shfl.sync d, a, ..., members; bra AFTER;
//   SLOW: deposit a;
//         bar.warp.sync members;
//         shfl.sync d, a, ..., members;  // `converged`: reads the deposited values
//         bar.warp.sync members;         // until all have read
//   AFTER:
//
// Guarded operations stay as they are, since lanes elsewhere take no part in them. A function that
// would have more than a dozen operations written out stays as it is.
Function ConvergeCollectives(const Module& module, std::uint32_t index, const BlockShape& shape,
                             std::int64_t local_stride);

}  // namespace torpor::ptx
