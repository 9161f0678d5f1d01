#pragma once

#include <llvm/IR/Module.h>

#include <string_view>

#include "emulator/ptx/matrix.h"

namespace torpor::emulator {

// void(ptr d, ptr a, ptr b, ptr c): d = a * b + c for fragments in memory, register after register,
// each with its 32 lanes. d may be c. Made when `name` is asked for first. Every element of d is a
// chain of fused multiply-adds along k, in the accumulator's type (f32 for f16).
//
// Fragments of mma.sync are laid out as the PTX manual says. wmma leaves that open; here the
// elements, counted register after register and lane after lane, are the matrix line by line: A
// and B in the layout that they are loaded from, C and D by rows.
llvm::Function* MatrixProduct(llvm::Module& module, const ptx::MatrixInstruction& matrix,
                              std::string_view name);

// Whether the module has any.
bool HasMatrixProduct(const llvm::Module& module);

}  // namespace torpor::emulator
