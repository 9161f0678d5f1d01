#pragma once

#include <vector>

#include "emulator/sass/statement.h"

namespace torpor::sass {

// A loop may wait for what another warp writes to shared memory: the machine's code does not say so
// of a load, but PTX has to, so that the others get their turn. Such a loop loads from an address
// that it does not change, and neither writes shared memory nor has a barrier: without another warp
// the load would be in front of it.
void MarkWaits(std::vector<Statement>& statements);

}  // namespace torpor::sass
