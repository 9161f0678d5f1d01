// wmma and mma.sync: fragments in memory, products by functions of the module (see
// matrix_product.h).
#include "emulator/ptx/matrix.h"

#include <algorithm>
#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"
#include "emulator/exec/codegen/matrix_product.h"

namespace torpor::emulator {

using ptx::MatrixInstruction;
using ptx::MatrixPart;

bool FunctionEmitter::IsFragment(const Operand& operand, const MatrixInstruction& matrix,
                                 MatrixPart part) const {
  if (operand.kind == Operand::Kind::kRegister) return matrix.registers(part) == 1;
  return operand.kind == Operand::Kind::kVector &&
         operand.elements.size() == matrix.registers(part);
}

// {a} may be written as a.
std::vector<FunctionEmitter::Operand> FunctionEmitter::RegistersOf(const Operand& fragment) {
  if (fragment.kind == Operand::Kind::kVector) return fragment.elements;
  return {fragment};
}

llvm::Value* FunctionEmitter::FragmentRegister(Value* memory, unsigned bits, std::size_t index) {
  return b_.CreateConstInBoundsGEP1_64(Lanes(IntType(bits)), memory, index);
}

llvm::Value* FunctionEmitter::NewFragment(unsigned bits, std::size_t registers) {
  llvm::IRBuilder<> entry(entry_, entry_->begin());
  llvm::AllocaInst* memory =
      entry.CreateAlloca(llvm::ArrayType::get(Lanes(IntType(bits)), registers));
  memory->setAlignment(llvm::Align(256));
  return memory;
}

bool FunctionEmitter::IsInPlace(const Operand& fragment, unsigned bits) const {
  return fragments_.IsInPlace(fragment) &&
         ptx::BitWidth(function_.registers[fragment.elements[0].reg]) == bits;
}

// Memory for a copy; an instruction has one of each part, all instructions the same.
llvm::Value* FunctionEmitter::FragmentCopy(MatrixPart part, unsigned bits, std::size_t registers) {
  Value*& memory = fragment_copies_[{part, bits, registers}];
  if (memory == nullptr) memory = NewFragment(bits, registers);
  return memory;
}

// Where a fragment that is read lies; a copy if its registers lie apart.
llvm::Value* FunctionEmitter::FragmentMemory(const Operand& fragment, MatrixPart part,
                                             unsigned bits) {
  if (IsInPlace(fragment, bits)) return slots_[fragment.elements[0].reg];
  const std::vector<Operand> registers = RegistersOf(fragment);
  Value* memory = FragmentCopy(part, bits, registers.size());
  for (std::size_t i = 0; i < registers.size(); ++i) {
    Value* value = ReadVector(registers[i], bits == 64 ? Type::kB64 : Type::kB32);
    b_.CreateStore(value, FragmentRegister(memory, bits, i));
  }
  return memory;
}

// Whether an instruction may write a fragment where its registers lie: no lane must keep what it
// has, and nothing is read there once something is written.
bool FunctionEmitter::IsWrittenInPlace(const Instruction& instruction, const Operand& fragment,
                                       unsigned bits, const Operand* read) const {
  if (instruction.guard != ptx::kNoIndex || !IsInPlace(fragment, bits)) return false;
  const auto blended = [&](const Operand& element) {
    return lanes_.needs_blend(block_, element.reg);
  };
  if (std::any_of(fragment.elements.begin(), fragment.elements.end(), blended)) return false;
  if (read == nullptr || read->kind != Operand::Kind::kVector || read->elements.empty())
    return true;
  if (read->elements[0].reg == fragment.elements[0].reg) return true;
  return std::none_of(read->elements.begin(), read->elements.end(), [&](const Operand& element) {
    return element.reg >= fragment.elements.front().reg &&
           element.reg <= fragment.elements.back().reg;
  });
}

// Runs `body` with the memory that is to become `fragment`.
void FunctionEmitter::WriteFragment(const Instruction& instruction, const Operand& fragment,
                                    unsigned bits, const Operand* read,
                                    const std::function<void(Value* memory)>& body) {
  if (IsWrittenInPlace(instruction, fragment, bits, read)) {
    return body(slots_[fragment.elements[0].reg]);
  }
  const std::vector<Operand> registers = RegistersOf(fragment);
  Value* memory = FragmentCopy(MatrixPart::kD, bits, registers.size());
  body(memory);
  for (std::size_t i = 0; i < registers.size(); ++i) {
    Value* value = b_.CreateLoad(Lanes(IntType(bits)), FragmentRegister(memory, bits, i));
    Write(instruction, registers[i], value, bits == 64 ? Type::kB64 : Type::kB32);
  }
}

void FunctionEmitter::EmitMatrix(const Instruction& instruction) {
  const auto matrix = ptx::DecodeMatrix(instruction.spelling);
  if (!matrix) return Unsupported(instruction);
  if (matrix->action == MatrixInstruction::Action::kMultiply) {
    return EmitMatrixProduct(instruction, *matrix);
  }
  EmitMatrixTransfer(instruction, *matrix);
}

// wmma.mma or mma.sync: d, a, b, c
void FunctionEmitter::EmitMatrixProduct(const Instruction& instruction,
                                        const MatrixInstruction& matrix) {
  const auto& operands = instruction.operands;
  const MatrixPart parts[] = {MatrixPart::kD, MatrixPart::kA, MatrixPart::kB, MatrixPart::kC};
  bool fits = operands.size() == 4;
  for (std::size_t i = 0; fits && i < 4; ++i) fits = IsFragment(operands[i], matrix, parts[i]);
  if (!fits) return Unsupported(instruction, "operands");
  IfAny(ActiveMask(instruction), [&] {
    std::vector<Value*> arguments = {nullptr};
    for (std::size_t i = 1; i < 4; ++i) {
      arguments.push_back(FragmentMemory(operands[i], parts[i], matrix.register_bits(parts[i])));
    }
    llvm::Function* product = MatrixProduct(unit_.llvm_module(), matrix, instruction.spelling);
    WriteFragment(instruction, operands[0], matrix.register_bits(MatrixPart::kD), &operands[3],
                  [&](Value* memory) {
                    arguments[0] = memory;
                    b_.CreateCall(product, arguments);
                  });
  });
}

// wmma.load.x {registers}, [address]{, stride}; wmma.store.d [address], {registers}{, stride}
void FunctionEmitter::EmitMatrixTransfer(const Instruction& instruction,
                                         const MatrixInstruction& matrix) {
  const auto& operands = instruction.operands;
  const bool load = matrix.action == MatrixInstruction::Action::kLoad;
  const bool has_both = operands.size() == 2 || operands.size() == 3;
  if (!has_both) return Unsupported(instruction, "operands");
  const Operand& fragment = operands[load ? 0 : 1];
  const Operand& place = operands[load ? 1 : 0];
  if (place.kind != Operand::Kind::kAddress || !IsFragment(fragment, matrix, matrix.part)) {
    return Unsupported(instruction, "operands");
  }
  const unsigned bits = matrix.register_bits(matrix.part);
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    const Address address = AddressOf(place, SpaceOf(instruction, place));
    if (address.value == nullptr) return;
    std::vector<Value*> arguments = {context_, WarpAddress(address, mask), nullptr, nullptr};
    AppendTile(matrix, operands.size() == 3 ? &operands[2] : nullptr, mask, arguments);
    if (!load) {
      arguments[3] = FragmentMemory(fragment, MatrixPart::kD, bits);
      CallRuntime(offsetof(RuntimeCalls, store_tile), b_.getVoidTy(), arguments);
      return;
    }
    WriteFragment(instruction, fragment, bits, nullptr, [&](Value* memory) {
      arguments[3] = memory;
      CallRuntime(offsetof(RuntimeCalls, load_tile), b_.getVoidTy(), arguments);
    });
  });
}

// The arguments of load_tile and store_tile from `stride` on; [3] is left to the caller.
void FunctionEmitter::AppendTile(const MatrixInstruction& matrix, const Operand* stride,
                                 Value* mask, std::vector<Value*>& arguments) {
  const MatrixPart part = matrix.part;
  const unsigned bits = ptx::BitWidth(matrix.type(part));
  const unsigned lines = matrix.column ? matrix.columns(part) : matrix.rows(part);
  const unsigned length = matrix.column ? matrix.rows(part) : matrix.columns(part);
  Value* elements = b_.getInt64(length);
  if (stride != nullptr) {
    const bool uniform = lanes_.OperandShape(*stride, 32).uniform();
    Value* given = uniform ? ReadScalar(*stride, Type::kU32)
                           : FirstLane(ReadVector(*stride, Type::kU32), mask);
    elements = Resize(given, 64, false);
  }
  arguments[2] = b_.CreateLShr(b_.CreateMul(elements, b_.getInt64(bits)), 3);
  const bool accumulator = part >= MatrixPart::kC;
  const unsigned copies = matrix.registers(part) / matrix.distinct_registers(part);
  for (const unsigned number :
       {lines, length * bits / 8, accumulator && matrix.column ? bits / 8 : 0, copies}) {
    arguments.push_back(b_.getInt32(number));
  }
}

// What the first active lane holds.
llvm::Value* FunctionEmitter::FirstLane(Value* lanes, Value* mask) {
  Value* first = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, MaskBits(mask), b_.getTrue());
  return b_.CreateExtractElement(lanes, first);
}

// The generic address that all lanes give.
llvm::Value* FunctionEmitter::WarpAddress(const Address& address, Value* mask) {
  Value* value = address.value;
  if (!address.shape.uniform()) value = FirstLane(LaneAddresses(address), mask);
  return b_.CreatePtrToInt(Pointer(address, value), b_.getInt64Ty());
}

}  // namespace torpor::emulator
