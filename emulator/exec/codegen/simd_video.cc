// Video instructions on pairs of 16 bits and on four bytes: vadd2, vabsdiff4 and their like.
#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Opcode;

bool FunctionEmitter::EmitVideoFamily(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kVabsdiff2:
    case Opcode::kVadd2:
    case Opcode::kVavrg2:
    case Opcode::kVmax2:
    case Opcode::kVmin2:
    case Opcode::kVset2:
    case Opcode::kVsub2:
      return EmitVideo(instruction, 2), true;
    case Opcode::kVabsdiff4:
    case Opcode::kVadd4:
    case Opcode::kVavrg4:
    case Opcode::kVmax4:
    case Opcode::kVmin4:
    case Opcode::kVset4:
    case Opcode::kVsub4:
      return EmitVideo(instruction, 4), true;
    default:
      return false;
  }
}

// Of two fields, widened to 32 bits.
llvm::Value* FunctionEmitter::VideoField(const Instruction& instruction, Value* a, Value* b) {
  switch (instruction.opcode) {
    case Opcode::kVadd2:
    case Opcode::kVadd4:
      return b_.CreateAdd(a, b);
    case Opcode::kVsub2:
    case Opcode::kVsub4:
      return b_.CreateSub(a, b);
    case Opcode::kVabsdiff2:
    case Opcode::kVabsdiff4:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, b_.CreateSub(a, b), b_.getFalse());
    case Opcode::kVavrg2:
    case Opcode::kVavrg4: {
      // Halves are rounded away from zero.
      Value* sum = b_.CreateAdd(a, b);
      Value* up = b_.CreateICmpSGE(sum, Like(sum, 0));
      return b_.CreateAShr(b_.CreateAdd(sum, b_.CreateZExt(up, sum->getType())), Like(sum, 1));
    }
    case Opcode::kVmax2:
    case Opcode::kVmax4:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
    case Opcode::kVmin2:
    case Opcode::kVmin4:
      return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
    default:
      return b_.CreateZExt(CompareValues(instruction, Type::kS32, a, b), a->getType());
  }
}

llvm::Value* FunctionEmitter::SaturateField(Value* value, unsigned bits, bool is_signed) {
  const std::uint64_t half = std::uint64_t{1} << (bits - 1);
  Value* least = Like(value, is_signed ? std::uint64_t{0} - half : 0);
  Value* largest = Like(value, is_signed ? half - 1 : 2 * half - 1);
  value = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, value, least);
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, value, largest);
}

// vop4.dtype.atype.btype{.sat}{.add} d, a, b, c: with .add the sum of the fields and c.
void FunctionEmitter::EmitVideo(const Instruction& instruction, unsigned fields) {
  const bool compares =
      instruction.opcode == Opcode::kVset2 || instruction.opcode == Opcode::kVset4;
  const std::size_t first = compares ? 0 : 1;
  if (instruction.operands.size() != 4 || instruction.types.size() != first + 2) {
    return Unsupported(instruction, "operands");
  }
  for (const Type type : instruction.types) {
    if (type != Type::kU32 && type != Type::kS32) return Unsupported(instruction);
  }
  const unsigned bits = 32 / fields;
  Value* a = Read(instruction.operands[1], Type::kB32);
  Value* b = Read(instruction.operands[2], Type::kB32);
  const bool adds = instruction.Has(Modifier::kAdd);
  Value* result = adds ? Read(instruction.operands[3], Type::kB32) : Like(a, 0);
  const auto field = [&](Value* whole, unsigned index, Type type) {
    Value* shifted = b_.CreateLShr(whole, Like(whole, std::uint64_t{index} * bits));
    return Resize(Resize(shifted, bits, false), 32, ptx::IsSigned(type));
  };
  for (unsigned i = 0; i < fields; ++i) {
    Value* value = VideoField(instruction, field(a, i, instruction.types[first]),
                              field(b, i, instruction.types[first + 1]));
    if (instruction.Has(Modifier::kSat)) {
      value = SaturateField(value, bits, ptx::IsSigned(instruction.types[0]));
    }
    if (adds) {
      result = b_.CreateAdd(result, value);
      continue;
    }
    value = b_.CreateAnd(value, Like(value, (std::uint64_t{1} << bits) - 1));
    result = b_.CreateOr(result, b_.CreateShl(value, Like(value, std::uint64_t{i} * bits)));
  }
  Write(instruction, instruction.operands[0], result, Type::kB32);
}

}  // namespace torpor::emulator
