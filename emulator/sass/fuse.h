#pragma once

#include "emulator/sass/emitter.h"

namespace torpor::sass {

// Joins operations that two instructions compute in halves: 64-bit sums by words with a carry in
// between, comparisons, copies. The remaining pointer arithmetic is in a form that the emulator's
// lane analysis understands.
void FuseHalves(Emitter& emitter);

}  // namespace torpor::sass
