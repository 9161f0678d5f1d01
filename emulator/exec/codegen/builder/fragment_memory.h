#pragma once

#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "emulator/exec/codegen/builder/operand_builder.h"
#include "emulator/ptx/matrix.h"

namespace torpor::emulator {

// The registers of a fragment; {a} may be written as a.
std::vector<ptx::Operand> RegistersOf(const ptx::Operand& fragment);

// Matrix fragments as memory: register after register, 32 lanes each. A fragment whose registers
// lie side by side is used in place, others are copied.
class FragmentMemory {
 public:
  using Value = llvm::Value;
  using Instruction = ptx::Instruction;
  using Operand = ptx::Operand;

  explicit FragmentMemory(OperandBuilder& operands);

  // Where the fragment can be read; `bits` is the width of its registers.
  Value* Read(const Operand& fragment, ptx::MatrixPart part, unsigned bits);
  // Calls `body` with memory to write, which then becomes the fragment. `read` is a fragment that
  // `body` still reads, or null.
  void Write(const Instruction& instruction, const Operand& fragment, unsigned bits,
             const Operand* read, const std::function<void(Value* memory)>& body);

 private:
  bool IsInPlace(const Operand& fragment, unsigned bits) const;
  bool IsWrittenInPlace(const Instruction& instruction, const Operand& fragment, unsigned bits,
                        const Operand* read) const;
  Value* FragmentCopy(ptx::MatrixPart part, unsigned bits, std::size_t registers);

  OperandBuilder& operands_;
  LaneBuilder& code_;
  RegisterFile& registers_;
  BlockMasks& masks_;
  const FunctionSource& source_;
  std::map<std::tuple<ptx::MatrixPart, unsigned, std::size_t>, Value*> copies_;
};

}  // namespace torpor::emulator
