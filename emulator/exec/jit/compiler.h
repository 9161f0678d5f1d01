#pragma once

#include <string>
#include <vector>

#include "emulator/exec/codegen/builder/kernel_layout.h"
#include "emulator/exec/interface/exec_error.h"
#include "emulator/ptx/lane_shape.h"
#include "emulator/ptx/module.h"

namespace torpor::emulator {

// What object code depends on besides its PTX: the processor and this code generator.
const std::string& TargetDescription();

// Translates a kernel to an object file whose entry is kEntrySymbol.
ExecResult<std::vector<char>> CompileKernel(const ptx::Module& module, std::uint32_t kernel,
                                            const KernelLayout& layout,
                                            const ptx::BlockShape& block_shape);

}  // namespace torpor::emulator
