#pragma once

#include <cstdint>
#include <map>

#include "emulator/exec/codegen/builder/function_source.h"
#include "emulator/exec/codegen/builder/lane_builder.h"
#include "emulator/exec/codegen/builder/memory_access.h"

namespace torpor::emulator {

// Parameters and results of device functions and of calls, as words of 32 lanes: inlining a call
// removes the memory altogether.
class ParameterMemory {
 public:
  using Value = llvm::Value;

  ParameterMemory(LaneBuilder& code, const FunctionSource& source) : code_(code), source_(source) {}

  // Memory of variable `symbol`: an argument of the function, or stack memory of a call sequence.
  Value* Of(std::uint32_t symbol);
  // 32 lanes of 1 to 8 bytes. `offset` is a multiple of min(bytes, 4).
  Value* Load(Value* memory, std::uint64_t offset, unsigned bytes);
  // Lanes outside `mask` keep old values.
  void Store(Value* memory, std::uint64_t offset, Value* value, Value* mask);
  // Copies parameters with a taken address to local memory. PTX forbids writes to parameters.
  void Spill(MemoryAccess& memory, Value* mask);

 private:
  Value* WordPointer(Value* memory, std::uint64_t word);

  LaneBuilder& code_;
  const FunctionSource& source_;
  std::map<std::uint32_t, Value*> memory_;  // by symbol
};

}  // namespace torpor::emulator
