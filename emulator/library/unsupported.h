#pragma once

namespace torpor::emulator {

// Says on stderr, once for each `function`, that the emulator lacks it.
void SayUnsupported(const char* function);

}  // namespace torpor::emulator
