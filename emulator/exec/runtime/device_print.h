#pragma once

#include <cstdint>

#include "emulator/exec/interface/exec_error.h"
#include "emulator/exec/runtime/device_reader.h"

namespace torpor::emulator {

// What printf in a kernel does: `arguments` is the address of the arguments, packed as vprintf's
// caller packs them, each at its natural alignment, 4-byte integers and 8-byte everything else.
// Writes to stdout, up to 1 MiB, CUDA's customary buffer; the rest is cut, and so are widths and
// precisions above 4096. Returns the number of arguments, or -1 without a format;
// kIllegalAddress, and nothing is written, if the kernel may not read the format, an argument or
// a string that an argument names.
ExecResult<int> DevicePrint(const DeviceReader& reader, std::uint64_t format,
                            std::uint64_t arguments);

}  // namespace torpor::emulator
