#pragma once

#include <memory>

#include "base/units.h"
#include "emulator/driver/base/driver_result.h"
#include "emulator/driver/device/device.h"
#include "emulator/exec/program.h"

namespace torpor::emulator {

// Loads for `device` what cuModuleLoadData takes: a fatbin wrapper, a fatbin, a cubin, a linked
// module of cuLinkComplete, or PTX text that ends with NUL. `module` must be readable as far as its
// own header says. `device` must outlive the program.
DriverResult<std::unique_ptr<Program>> LoadProgram(const void* module, DriverDevice& device);

// Returns the size of what LoadProgram takes, as the module's own header says; 0 for a header that
// is none.
Bytes ModuleBytes(const void* module);

}  // namespace torpor::emulator
