#pragma once

#include <string>
#include <vector>

#include "emulator/exec/codegen/builder/kernel_layout.h"
#include "emulator/exec/interface/exec_error.h"
#include "emulator/ptx/lane_shape.h"
#include "emulator/ptx/module.h"

namespace torpor::emulator {

// Names the processor, LLVM and the version of this code generator: with the PTX, all that object
// code depends on. Part of every cache key. Thread-safe.
const std::string& TargetDescription();

// Translates a kernel to an object file with entry kEntrySymbol and traits kTraitsSymbol, for
// blocks of shape `block_shape`. kUnsupported names the first instruction that the emulator does
// not know. Thread-safe; takes milliseconds to seconds.
ExecResult<std::vector<char>> CompileKernel(const ptx::Module& module, std::uint32_t kernel,
                                            const KernelLayout& layout,
                                            const ptx::BlockShape& block_shape);

}  // namespace torpor::emulator
