#pragma once

#include <vector>

#include "emulator/sass/statement.h"

namespace torpor::sass {

// Marks loads of shared memory in loops that wait for another warp. Machine code does not
// distinguish such loads, but PTX must, so that the other warps get their turn. Such a loop loads
// from an address that does not change, and neither writes shared memory nor has a barrier: without
// another warp, the load would be in front of the loop.
void MarkWaits(std::vector<Statement>& statements);

}  // namespace torpor::sass
