#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// Arithmetic with directed rounding, by AVX-512 instructions with an embedded rounding mode. CUDA's
// expf() uses directed rounding.
class DirectedRounding {
 public:
  using Value = llvm::Value;

  explicit DirectedRounding(llvm::IRBuilder<>& builder) : b_(builder) {}

  // Whether the CPU has an instruction for `operation`.
  static bool Has(RoundedOperation operation);

  // `inputs` are floats or doubles, or vectors of 32; the result has the same type. `rounding` is
  // not kNearest.
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
