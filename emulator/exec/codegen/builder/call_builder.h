#pragma once

#include <cstdint>
#include <vector>

#include "emulator/exec/codegen/builder/ended_lanes.h"
#include "emulator/exec/codegen/builder/function_declarations.h"
#include "emulator/exec/codegen/builder/operand_builder.h"
#include "emulator/exec/codegen/builder/parameter_memory.h"

namespace torpor::emulator {

// Calls of device functions.
class CallBuilder {
 public:
  using Value = llvm::Value;

  CallBuilder(OperandBuilder& operands, ParameterMemory& parameters,
              FunctionDeclarations& declarations, EndedLanes& ended)
      : operands_(operands), parameters_(parameters), declarations_(declarations), ended_(ended) {}

  ParameterMemory& parameters() { return parameters_; }

  // Calls function `index` for the lanes of `mask`. `arguments` are the memory of its results and
  // parameters, with as many bytes as the function declares.
  void Call(std::uint32_t index, const std::vector<Value*>& arguments, Value* mask) {
    LaneBuilder& code = operands_.code();
    std::vector<Value*> all = {operands_.context().pointer(), code.MaskBits(mask)};
    all.insert(all.end(), arguments.begin(), arguments.end());
    ended_.Record(code->CreateCall(declarations_.Of(index), all));
  }

 private:
  OperandBuilder& operands_;
  ParameterMemory& parameters_;
  FunctionDeclarations& declarations_;
  EndedLanes& ended_;
};

}  // namespace torpor::emulator
