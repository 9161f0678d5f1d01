#pragma once

#include <cstdint>

namespace torpor::emulator {

// What printf in a kernel does: `arguments` are packed as vprintf's caller packs them, each at
// its natural alignment, 4-byte integers and 8-byte everything else. Writes to stdout; returns
// the number of arguments, or -1 without a format.
int DevicePrint(const char* format, const std::uint8_t* arguments);

}  // namespace torpor::emulator
