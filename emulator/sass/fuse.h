#pragma once

#include "emulator/sass/emitter.h"

namespace torpor::sass {

// Joins what two instructions compute in halves: sums of 64 bits by words with a carry between
// them, comparisons, copies. What is left of a pointer's computation is one that the emulator's
// analysis of lanes understands.
void FuseHalves(Emitter& emitter);

}  // namespace torpor::sass
