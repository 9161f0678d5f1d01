#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "emulator/exec/codegen/builder/address_builder.h"
#include "emulator/exec/codegen/builder/block_masks.h"
#include "emulator/exec/codegen/builder/context_builder.h"
#include "emulator/exec/codegen/builder/first_error.h"
#include "emulator/exec/codegen/builder/function_source.h"
#include "emulator/exec/codegen/builder/kernel_layout.h"
#include "emulator/exec/codegen/builder/lane_builder.h"
#include "emulator/exec/codegen/builder/local_stack.h"
#include "emulator/exec/codegen/builder/operand_builder.h"
#include "emulator/exec/codegen/builder/register_file.h"
#include "tests/emulator/exec/codegen/builder/generated_function.h"

namespace torpor::emulator {

inline constexpr ptx::BlockShape kWholeWarps = {32, true, true};

// Results of generated code: numbers of all lanes.
using LaneNumbers = std::array<std::uint32_t, kWarpLanes>;

// Builds code for a kernel of PTX, without FunctionEmitter, and runs it.
class BuilderTest : public ::testing::Test {
 protected:
  // The builders that the others stand on.
  struct Parts {
    Parts(const FunctionSource& source, llvm::Function& target);

    FirstError error;
    LaneBuilder code;
    ContextBuilder context;
    RegisterFile registers;
    BlockMasks masks;
    LocalStack stack;
    AddressBuilder addresses;
    OperandBuilder operands;
  };

  BuilderTest();

  // Takes a kernel `k` with this body and the registers %r0-9, %rd0-9 and %p0-9, and builds at its
  // first block. `before` is the module's text before the kernel.
  void Open(const std::string& body, const std::string& before = "",
            const ptx::BlockShape& shape = kWholeWarps);
  // Returns from the function, and ends blocks that the test did not build.
  void Close(std::uint32_t result = 0);
  // Stores 32 bits of all lanes, or of one, as result `index`.
  void StoreResult(unsigned index, llvm::Value* value);
  std::uint32_t Run() { return generated_.Run(&context_); }

  LaneBuilder& code() { return parts_->code; }
  const ptx::Instruction& instruction(std::size_t index) const {
    return source_->function.instructions[index];
  }
  // A <32 x i1>.
  llvm::Value* Mask(std::uint32_t bits);

  GeneratedFunction generated_;
  RuntimeCalls calls_ = {};
  WarpContext context_;
  std::array<LaneNumbers, 4> results_ = {};

  std::unique_ptr<ptx::Module> module_;
  KernelLayout layout_;
  std::unique_ptr<FunctionSource> source_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace torpor::emulator
