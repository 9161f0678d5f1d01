// Video instructions on pairs of 16 bits and on four bytes: vadd2, vabsdiff4 and their like.
#include "emulator/exec/codegen/comparison.h"
#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Type;

namespace {

// Of two fields, widened to 32 bits.
Value* VideoField(OperandBuilder& to, const Instruction& instruction, Value* a, Value* b) {
  LaneBuilder& code = to.code();
  switch (instruction.opcode) {
    case Opcode::kVadd2:
    case Opcode::kVadd4:
      return code->CreateAdd(a, b);
    case Opcode::kVsub2:
    case Opcode::kVsub4:
      return code->CreateSub(a, b);
    case Opcode::kVabsdiff2:
    case Opcode::kVabsdiff4:
      return code->CreateBinaryIntrinsic(llvm::Intrinsic::abs, code->CreateSub(a, b),
                                         code->getFalse());
    case Opcode::kVavrg2:
    case Opcode::kVavrg4: {
      // Halves are rounded away from zero.
      Value* sum = code->CreateAdd(a, b);
      Value* up = code->CreateICmpSGE(sum, Like(sum, 0));
      return code->CreateAShr(code->CreateAdd(sum, code->CreateZExt(up, sum->getType())),
                              Like(sum, 1));
    }
    case Opcode::kVmax2:
    case Opcode::kVmax4:
      return code->CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
    case Opcode::kVmin2:
    case Opcode::kVmin4:
      return code->CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
    default:
      return code->CreateZExt(CompareValues(to, instruction, Type::kS32, a, b), a->getType());
  }
}

// Clamps to the range of a field of `bits`.
Value* SaturateField(LaneBuilder& code, Value* value, unsigned bits, bool is_signed) {
  const std::uint64_t half = std::uint64_t{1} << (bits - 1);
  Value* smallest = Like(value, is_signed ? std::uint64_t{0} - half : 0);
  Value* largest = Like(value, is_signed ? half - 1 : 2 * half - 1);
  value = code->CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, smallest);
  return code->CreateBinaryIntrinsic(llvm::Intrinsic::smin, value, largest);
}

// vop4.dtype.atype.btype{.sat}{.add} d, a, b, c: with .add the sum of the fields and c.
void EmitVideo(OperandBuilder& to, const Instruction& instruction, unsigned fields) {
  LaneBuilder& code = to.code();
  const bool compares =
      instruction.opcode == Opcode::kVset2 || instruction.opcode == Opcode::kVset4;
  const std::size_t first = compares ? 0 : 1;
  if (instruction.operands.size() != 4 || instruction.types.size() != first + 2) {
    return to.Unsupported(instruction, "operands");
  }
  for (const Type type : instruction.types) {
    if (type != Type::kU32 && type != Type::kS32) return to.Unsupported(instruction);
  }
  const unsigned bits = 32 / fields;
  Value* a = to.Read(instruction.operands[1], Type::kB32);
  Value* b = to.Read(instruction.operands[2], Type::kB32);
  const bool adds = instruction.Has(Modifier::kAdd);
  Value* result = adds ? to.Read(instruction.operands[3], Type::kB32) : Like(a, 0);
  const auto field = [&](Value* whole, unsigned index, Type type) {
    Value* shifted = code->CreateLShr(whole, Like(whole, std::uint64_t{index} * bits));
    return code.Resize(code.Resize(shifted, bits, false), 32, ptx::IsSigned(type));
  };
  for (unsigned i = 0; i < fields; ++i) {
    Value* value = VideoField(to, instruction, field(a, i, instruction.types[first]),
                              field(b, i, instruction.types[first + 1]));
    if (instruction.Has(Modifier::kSat)) {
      value = SaturateField(code, value, bits, ptx::IsSigned(instruction.types[0]));
    }
    if (adds) {
      result = code->CreateAdd(result, value);
      continue;
    }
    value = code->CreateAnd(value, Like(value, (std::uint64_t{1} << bits) - 1));
    result = code->CreateOr(result, code->CreateShl(value, Like(value, std::uint64_t{i} * bits)));
  }
  to.Write(instruction, instruction.operands[0], result, Type::kB32);
}

}  // namespace

void EmitVideoPair(OperandBuilder& to, const Instruction& instruction) {
  EmitVideo(to, instruction, 2);
}

void EmitVideoQuad(OperandBuilder& to, const Instruction& instruction) {
  EmitVideo(to, instruction, 4);
}

}  // namespace torpor::emulator
