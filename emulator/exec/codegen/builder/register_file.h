#pragma once

#include <cstdint>
#include <vector>

#include "emulator/exec/codegen/builder/function_source.h"
#include "emulator/exec/codegen/builder/lane_builder.h"

namespace torpor::emulator {

// Stack slots of a function's PTX registers: a vector of 32 lanes each, or lane 0's value alone
// where the analysis found the lanes linear. Registers of one matrix fragment lie side by side.
class RegisterFile {
 public:
  using Value = llvm::Value;

  // Allocates the slots where `code` builds.
  RegisterFile(LaneBuilder& code, const FunctionSource& source);

  // The register as an integer: lane 0's value if `scalar`, else 32 lanes.
  Value* Read(std::uint32_t reg, bool scalar);
  Value* slot(std::uint32_t reg) const { return slots_[reg]; }

 private:
  LaneBuilder& code_;
  const FunctionSource& source_;
  std::vector<Value*> slots_;
};

}  // namespace torpor::emulator
