#include "emulator/exec/codegen/builder/fragment_memory.h"

#include <algorithm>

namespace torpor::emulator {

using ptx::MatrixPart;
using ptx::Operand;
using ptx::Type;

// {a} may be written as a.
std::vector<ptx::Operand> RegistersOf(const Operand& fragment) {
  if (fragment.kind == Operand::Kind::kVector) return fragment.elements;
  return {fragment};
}

FragmentMemory::FragmentMemory(OperandBuilder& operands)
    : operands_(operands),
      code_(operands.code()),
      registers_(operands.registers()),
      masks_(operands.masks()),
      source_(operands.source()) {}

bool FragmentMemory::IsInPlace(const Operand& fragment, unsigned bits) const {
  return source_.fragments.IsInPlace(fragment) &&
         ptx::BitWidth(source_.function.registers[fragment.elements[0].reg]) == bits;
}

// Memory for a copy; an instruction has one of each part, all instructions the same.
llvm::Value* FragmentMemory::FragmentCopy(MatrixPart part, unsigned bits, std::size_t registers) {
  Value*& memory = copies_[{part, bits, registers}];
  if (memory == nullptr) memory = code_.VectorArray(bits, registers);
  return memory;
}

llvm::Value* FragmentMemory::Read(const Operand& fragment, MatrixPart part, unsigned bits) {
  if (IsInPlace(fragment, bits)) return registers_.slot(fragment.elements[0].reg);
  const std::vector<Operand> registers = RegistersOf(fragment);
  Value* memory = FragmentCopy(part, bits, registers.size());
  for (std::size_t i = 0; i < registers.size(); ++i) {
    Value* value = operands_.ReadVector(registers[i], bits == 64 ? Type::kB64 : Type::kB32);
    code_->CreateStore(value, code_.VectorAt(memory, bits, i));
  }
  return memory;
}

// Whether an instruction may write a fragment in place: no lane must keep an old value, and the
// instruction does not read there after the first write.
bool FragmentMemory::IsWrittenInPlace(const Instruction& instruction, const Operand& fragment,
                                      unsigned bits, const Operand* read) const {
  if (instruction.guard != ptx::kNoIndex || !IsInPlace(fragment, bits)) return false;
  const auto blended = [&](const Operand& element) {
    return source_.lanes.needs_blend(masks_.block(), element.reg);
  };
  if (std::any_of(fragment.elements.begin(), fragment.elements.end(), blended)) return false;
  if (read == nullptr || read->kind != Operand::Kind::kVector || read->elements.empty()) {
    return true;
  }
  if (read->elements[0].reg == fragment.elements[0].reg) return true;
  return std::none_of(read->elements.begin(), read->elements.end(), [&](const Operand& element) {
    return element.reg >= fragment.elements.front().reg &&
           element.reg <= fragment.elements.back().reg;
  });
}

void FragmentMemory::Write(const Instruction& instruction, const Operand& fragment, unsigned bits,
                           const Operand* read, const std::function<void(Value* memory)>& body) {
  if (IsWrittenInPlace(instruction, fragment, bits, read)) {
    return body(registers_.slot(fragment.elements[0].reg));
  }
  const std::vector<Operand> registers = RegistersOf(fragment);
  Value* memory = FragmentCopy(MatrixPart::kD, bits, registers.size());
  body(memory);
  for (std::size_t i = 0; i < registers.size(); ++i) {
    Value* value = code_->CreateLoad(Lanes(code_.IntType(bits)), code_.VectorAt(memory, bits, i));
    operands_.Write(instruction, registers[i], value, bits == 64 ? Type::kB64 : Type::kB32);
  }
}

}  // namespace torpor::emulator
