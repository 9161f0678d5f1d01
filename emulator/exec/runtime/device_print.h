#pragma once

#include <cstdint>

#include "emulator/exec/interface/exec_error.h"
#include "emulator/exec/runtime/device_reader.h"

namespace torpor::emulator {

// Carries out printf of a kernel. `arguments` is the address of the arguments, packed as by callers
// of vprintf: each at the natural alignment, integers in 4 bytes, all other types in 8. Writes at
// most 1 MiB to stdout, the size of CUDA's default buffer; cuts the rest, and cuts widths and
// precisions above 4096. Returns the number of arguments, or -1 without a format. Returns
// kIllegalAddress, and writes nothing, if the kernel may not read the format, an argument or a
// string argument.
ExecResult<int> DevicePrint(const DeviceReader& reader, std::uint64_t format,
                            std::uint64_t arguments);

}  // namespace torpor::emulator
