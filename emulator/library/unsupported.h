#pragma once

#include <string>

namespace torpor::emulator {

// Prints `line` on stderr, unless an equal line was printed before. Thread-safe.
void SayOnce(const std::string& line);

// Prints once for each `function` that the emulator lacks it.
void SayUnsupported(const char* function);

}  // namespace torpor::emulator
