// mov, cvta, isspacep.
#include <cstddef>

#include "emulator/exec/codegen/opcodes.h"
#include "emulator/exec/interface/arena_layout.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Operand;
using ptx::Space;
using ptx::Type;

namespace {

// Packs {a, b, ...} into a register, or unpacks a register.
void EmitMovVector(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const Type type = instruction.type();
  const Operand& destination = instruction.operands[0];
  const Operand& source = instruction.operands[1];
  const unsigned bits = ptx::BitWidth(type);
  const bool unpack = destination.kind == Operand::Kind::kVector;
  const Operand& parts = unpack ? destination : source;
  const auto count = static_cast<unsigned>(parts.elements.size());
  if (count == 0 || bits % count != 0 || bits / count < 8 || bits > 128 ||
      (unpack && source.kind == Operand::Kind::kVector)) {
    return to.Unsupported(instruction);
  }
  const unsigned part_bits = bits / count;
  const Type part_type = part_bits == 8    ? Type::kB8
                         : part_bits == 16 ? Type::kB16
                         : part_bits == 32 ? Type::kB32
                                           : Type::kB64;
  if (unpack) {
    Value* whole = code.ToInt(to.Read(source, type));
    for (unsigned i = 0; i < count; ++i) {
      Value* part = code->CreateLShr(whole, Like(whole, std::uint64_t{i} * part_bits));
      to.Write(instruction, destination.elements[i], code.Resize(part, part_bits, false),
               part_type);
    }
    return;
  }
  Value* whole = nullptr;
  for (unsigned i = 0; i < count; ++i) {
    Value* part = code.Resize(to.Read(source.elements[i], part_type), bits, false);
    part = code->CreateShl(part, Like(part, std::uint64_t{i} * part_bits));
    whole = whole == nullptr ? part : code->CreateOr(whole, part);
  }
  to.Write(instruction, destination, whole, type);
}

}  // namespace

void EmitMov(OperandBuilder& to, const Instruction& instruction) {
  if (!to.Expect(instruction, 2)) return;
  const bool vector = instruction.operands[0].kind == Operand::Kind::kVector ||
                      instruction.operands[1].kind == Operand::Kind::kVector;
  if (vector) return EmitMovVector(to, instruction);
  const Type type = instruction.type();
  if (ptx::BitWidth(type) > 64) return to.Unsupported(instruction);
  to.Write(instruction, instruction.operands[0], to.Read(instruction.operands[1], type), type);
}

// Generic addresses are addresses of this process; only addresses of shared memory are offsets.
void EmitCvta(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2)) return;
  const Type type = instruction.type();
  Value* value = code.Resize(to.Read(instruction.operands[1], type), 64, false);
  if (instruction.Has(Modifier::kShared)) {
    Value* base = to.context().Field(offsetof(WarpContext, shared), code->getInt64Ty());
    if (IsVector(value)) base = code.Spread(base, 0);
    value = instruction.Has(Modifier::kTo)
                ? code->CreateSub(value, base)
                : code->CreateAdd(code->CreateSExt(code.Resize(value, 32, false), value->getType()),
                                  base);
  }
  to.Write(instruction, instruction.operands[0], value, type);
}

// Compares with the bounds of the arena, and of the shared memory of the block or the cluster.
void EmitIsSpace(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (instruction.operands.size() < 2) return to.Unsupported(instruction);
  Value* address = to.Read(instruction.operands[1], Type::kU64);
  const auto field = [&](std::size_t offset) {
    Value* value = to.context().Field(offset, code->getInt64Ty());
    return IsVector(address) ? code.Spread(value, 0) : value;
  };
  const auto within = [&](Value* begin, Value* bytes) {
    return code->CreateICmpULT(code->CreateSub(address, begin), bytes);
  };
  Value* arena =
      within(field(offsetof(WarpContext, arena_begin)), field(offsetof(WarpContext, arena_bytes)));
  // The block's buffer is followed by guard pages.
  Value* own = within(field(offsetof(WarpContext, shared)), Like(address, kClusterStride));
  const auto in_cluster = [&] {
    const auto count = [&](std::size_t offset) {
      Value* number = to.context().Field(offset, code->getInt32Ty());
      if (IsVector(address)) number = code.Spread(number, 0);
      return code->CreateMul(code.Resize(number, 64, false), Like(address, kClusterStride));
    };
    Value* first = code->CreateSub(field(offsetof(WarpContext, shared)),
                                   count(offsetof(WarpContext, cluster_rank)));
    return within(first, count(offsetof(WarpContext, cluster_blocks)));
  };
  Value* result = nullptr;
  switch (instruction.space()) {
    case Space::kShared:
      result = instruction.Has(Modifier::kSharedCluster) ? in_cluster() : own;
      break;
    case Space::kLocal:
      result = code->CreateAnd(arena, code->CreateNot(in_cluster()));
      break;
    case Space::kGlobal:
      result = code->CreateNot(arena);
      break;
    default:
      return to.Unsupported(instruction);
  }
  to.Write(instruction, instruction.operands[0], result, Type::kPred);
}

}  // namespace torpor::emulator
