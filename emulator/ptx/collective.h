#pragma once

#include <cstdint>

#include "emulator/ptx/lane_shape.h"
#include "emulator/ptx/module.h"

namespace torpor::ptx {

// Whether lanes that its last operand names as members do this together: shfl.sync, vote.sync,
// match.sync, redux.sync, elect.sync.
bool IsCollective(const Instruction& instruction);

// Members of a collective operation wait for each other, each at its own instruction in whatever
// branch. This is function `index` of the module with such waiting written out: where lanes may
// run an operation while others of their warp are elsewhere, it becomes
//
//         converge SLOW, members;      // goes there unless all members are here
//         shfl.sync d, a, ..., members; bra AFTER;
//   SLOW: deposit a;
//         bar.warp.sync members;
//         shfl.sync d, a, ..., members;  // `converged`: reads what has been deposited
//         bar.warp.sync members;         // until all have read it
//   AFTER:
//
// Guarded operations stay as they are: lanes that are elsewhere take no part in them. So do all of
// a function that would have more than a dozen written out.
Function ConvergeCollectives(const Module& module, std::uint32_t index, const BlockShape& shape,
                             std::int64_t local_stride);

}  // namespace torpor::ptx
