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

// Matrix fragments as memory: register after register, 32 lanes each. Fragments with registers side
// by side are used in place; other fragments are copied.
class FragmentMemory {
 public:
  using Value = llvm::Value;
  using Instruction = ptx::Instruction;
  using Operand = ptx::Operand;

  explicit FragmentMemory(OperandBuilder& operands);

  // Returns memory with the fragment's registers of `bits` each; valid until the next Read or Write
  // of this part.
  Value* Read(const Operand& fragment, ptx::MatrixPart part, unsigned bits);
  // Calls `body` with memory to fill, and then writes the fragment's registers from there. `read`
  // is a fragment still read by `body`, or null.
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
