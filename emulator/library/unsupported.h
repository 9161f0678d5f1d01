#pragma once

#include <string>

namespace torpor::emulator {

// A line on stderr, once.
void SayOnce(const std::string& line);

// Says on stderr, once for each `function`, that the emulator lacks it.
void SayUnsupported(const char* function);

}  // namespace torpor::emulator
