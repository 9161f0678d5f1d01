#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// Arithmetic that is not rounded to nearest, by instructions that carry their rounding (AVX-512).
// CUDA's own expf() needs it.
class DirectedRounding {
 public:
  using Value = llvm::Value;

  explicit DirectedRounding(llvm::IRBuilder<>& builder) : b_(builder) {}

  // Whether this CPU, for which the code is generated, has such an instruction.
  static bool Has(RoundedOperation operation);

  // `inputs` are floats or doubles, or vectors of 32 of them; the result is of their type.
  // `rounding` is not kNearest.
  Value* Emit(RoundedOperation operation, Rounding rounding, const std::vector<Value*>& inputs);

 private:
  Value* EmitRegister(RoundedOperation operation, Rounding rounding,
                      const std::vector<Value*>& registers);
  Value* Widen(Value* scalar);
  Value* Part(Value* vector, unsigned begin, unsigned count);
  Value* Join(std::vector<Value*> parts);

  llvm::IRBuilder<>& b_;
};

}  // namespace torpor::emulator
