// wmma and mma.sync: fragments in memory, products by functions of the module (see
// matrix_product.h).
#include "emulator/ptx/matrix.h"

#include <cstddef>

#include "emulator/exec/codegen/matrix_product.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::MatrixInstruction;
using ptx::MatrixPart;
using ptx::Operand;
using ptx::Type;

namespace {

bool IsFragment(const Operand& operand, const MatrixInstruction& matrix, MatrixPart part) {
  if (operand.kind == Operand::Kind::kRegister) return matrix.registers(part) == 1;
  return operand.kind == Operand::Kind::kVector &&
         operand.elements.size() == matrix.registers(part);
}

// The value of the first active lane.
Value* FirstLane(LaneBuilder& code, Value* lanes, Value* mask) {
  Value* first =
      code->CreateBinaryIntrinsic(llvm::Intrinsic::cttz, code.MaskBits(mask), code->getTrue());
  return code->CreateExtractElement(lanes, first);
}

// The generic address given by all lanes.
Value* WarpAddress(LaneBuilder& code, MemoryAccess& memory, const LaneAddress& address,
                   Value* mask) {
  Value* value = address.value;
  if (!address.shape.uniform()) {
    value = FirstLane(code, memory.addresses().LaneAddresses(address), mask);
  }
  return code->CreatePtrToInt(memory.addresses().Pointer(address, value), code->getInt64Ty());
}

// The arguments of load_tile and store_tile from `stride` on; [3] is left to the caller.
void AppendTile(OperandBuilder& to, const MatrixInstruction& matrix, const Operand* stride,
                Value* mask, std::vector<Value*>& arguments) {
  LaneBuilder& code = to.code();
  const MatrixPart part = matrix.part;
  const unsigned bits = ptx::BitWidth(matrix.type(part));
  const unsigned lines = matrix.column ? matrix.columns(part) : matrix.rows(part);
  const unsigned length = matrix.column ? matrix.rows(part) : matrix.columns(part);
  Value* elements = code->getInt64(length);
  if (stride != nullptr) {
    const bool uniform = to.source().lanes.OperandShape(*stride, 32).uniform();
    Value* given = uniform ? to.ReadScalar(*stride, Type::kU32)
                           : FirstLane(code, to.ReadVector(*stride, Type::kU32), mask);
    elements = code.Resize(given, 64, false);
  }
  arguments[2] = code->CreateLShr(code->CreateMul(elements, code->getInt64(bits)), 3);
  const bool accumulator = part >= MatrixPart::kC;
  const unsigned copies = matrix.registers(part) / matrix.distinct_registers(part);
  for (const unsigned number :
       {lines, length * bits / 8, accumulator && matrix.column ? bits / 8 : 0, copies}) {
    arguments.push_back(code->getInt32(number));
  }
}

// wmma.mma or mma.sync: d, a, b, c
void EmitMatrixProduct(OperandBuilder& to, FragmentMemory& fragments,
                       const Instruction& instruction, const MatrixInstruction& matrix) {
  LaneBuilder& code = to.code();
  const auto& operands = instruction.operands;
  const MatrixPart parts[] = {MatrixPart::kD, MatrixPart::kA, MatrixPart::kB, MatrixPart::kC};
  bool fits = operands.size() == 4;
  for (std::size_t i = 0; fits && i < 4; ++i) fits = IsFragment(operands[i], matrix, parts[i]);
  if (!fits) return to.Unsupported(instruction, "operands");
  to.masks().IfAny(to.masks().Active(instruction), [&] {
    std::vector<Value*> arguments = {nullptr};
    for (std::size_t i = 1; i < 4; ++i) {
      arguments.push_back(fragments.Read(operands[i], parts[i], matrix.register_bits(parts[i])));
    }
    llvm::Function* product =
        MatrixProduct(*code.function().getParent(), matrix, instruction.spelling);
    fragments.Write(instruction, operands[0], matrix.register_bits(MatrixPart::kD), &operands[3],
                    [&](Value* registers) {
                      arguments[0] = registers;
                      code->CreateCall(product, arguments);
                    });
  });
}

// wmma.load.x {registers}, [address]{, stride}; wmma.store.d [address], {registers}{, stride}
void EmitMatrixTransfer(OperandBuilder& to, MemoryAccess& memory, FragmentMemory& fragments,
                        const Instruction& instruction, const MatrixInstruction& matrix) {
  LaneBuilder& code = to.code();
  const auto& operands = instruction.operands;
  const bool load = matrix.action == MatrixInstruction::Action::kLoad;
  const bool has_both = operands.size() == 2 || operands.size() == 3;
  if (!has_both) return to.Unsupported(instruction, "operands");
  const Operand& fragment = operands[load ? 0 : 1];
  const Operand& place = operands[load ? 1 : 0];
  if (place.kind != Operand::Kind::kAddress || !IsFragment(fragment, matrix, matrix.part)) {
    return to.Unsupported(instruction, "operands");
  }
  const unsigned bits = matrix.register_bits(matrix.part);
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    const LaneAddress address =
        memory.addresses().Of(place, memory.addresses().SpaceOf(instruction, place));
    if (address.value == nullptr) return;
    std::vector<Value*> arguments = {to.context().pointer(),
                                     WarpAddress(code, memory, address, mask), nullptr, nullptr};
    AppendTile(to, matrix, operands.size() == 3 ? &operands[2] : nullptr, mask, arguments);
    if (!load) {
      arguments[3] = fragments.Read(fragment, MatrixPart::kD, bits);
      to.context().Call(offsetof(RuntimeCalls, store_tile), code->getVoidTy(), arguments);
      return;
    }
    fragments.Write(instruction, fragment, bits, nullptr, [&](Value* registers) {
      arguments[3] = registers;
      to.context().Call(offsetof(RuntimeCalls, load_tile), code->getVoidTy(), arguments);
    });
  });
}

}  // namespace

void EmitMatrix(OperandBuilder& to, MemoryAccess& memory, FragmentMemory& fragments,
                const Instruction& instruction) {
  const auto matrix = ptx::DecodeMatrix(instruction.spelling);
  if (!matrix) return to.Unsupported(instruction);
  if (matrix->action == MatrixInstruction::Action::kMultiply) {
    return EmitMatrixProduct(to, fragments, instruction, *matrix);
  }
  EmitMatrixTransfer(to, memory, fragments, instruction, *matrix);
}

}  // namespace torpor::emulator
