// mapa and getctarank, and createpolicy beside them. The shared memory of a cluster's blocks lies
// kClusterStride apart, in the order of ranks, so that the rank in the cluster follows from the
// address.
#include <bit>
#include <cstddef>

#include "emulator/exec/codegen/opcodes.h"
#include "emulator/exec/interface/arena_layout.h"
#include "emulator/exec/interface/launch_config.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Opcode;
using ptx::Type;

namespace {

constexpr auto kStrideShift = static_cast<unsigned>(std::countr_zero(kClusterStride));
static_assert(std::size_t{1} << kStrideShift == kClusterStride);

// A 32-bit field of the warp, as wide as `like`.
Value* Number(OperandBuilder& to, std::size_t field, Value* like) {
  LaneBuilder& code = to.code();
  Value* number = code.Resize(to.context().Field(field, code->getInt32Ty()), Bits(like), false);
  return IsVector(like) ? code.Spread(number, 0) : number;
}

// The offset of `address` from the block's own shared memory: of a generic address, or an offset
// already.
Value* FromOwn(OperandBuilder& to, const Instruction& instruction, Value* address) {
  if (instruction.Has(Modifier::kShared)) return address;
  Value* own = to.context().Field(offsetof(WarpContext, shared), to.code()->getInt64Ty());
  return to.code()->CreateSub(address, IsVector(address) ? to.code().Spread(own, 0) : own);
}

// The same place in the shared memory of the block of rank `rank`. Ranks that the cluster lacks
// give addresses without memory.
Value* Mapped(OperandBuilder& to, const Instruction& instruction, Value* address, Value* rank) {
  LaneBuilder& code = to.code();
  Value* offset = FromOwn(to, instruction, address);
  rank = code->CreateBinaryIntrinsic(llvm::Intrinsic::umin, rank, Like(rank, kMaxClusterBlocks));
  Value* step = code->CreateSub(rank, Number(to, offsetof(WarpContext, cluster_rank), rank));
  Value* inside = code->CreateAnd(offset, Like(offset, kClusterStride - 1));
  Value* there = code->CreateAdd(inside, code->CreateShl(step, Like(step, kStrideShift)));
  return code->CreateAdd(code->CreateSub(address, offset), there);
}

// The rank of the block in whose shared memory `address` lies.
Value* RankOf(OperandBuilder& to, const Instruction& instruction, Value* address) {
  LaneBuilder& code = to.code();
  Value* offset = FromOwn(to, instruction, address);
  Value* rank = code->CreateAShr(offset, Like(offset, kStrideShift));
  rank = code->CreateAdd(rank, Number(to, offsetof(WarpContext, cluster_rank), rank));
  return code.Resize(rank, 32, false);
}

}  // namespace

// mapa d, address, rank; getctarank d, address; createpolicy d, ...
void EmitClusterAddress(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 1)) return;
  const Type type = instruction.type();
  if (ptx::IsFloat(type) || ptx::BitWidth(type) < 32) return to.Unsupported(instruction);
  const auto& operands = instruction.operands;
  if (instruction.opcode == Opcode::kMapa && operands.size() == 3) {
    Value* rank = code.Resize(to.Read(operands[2], Type::kU32), ptx::BitWidth(type), false);
    Value* mapped = Mapped(to, instruction, to.Read(operands[1], type), rank);
    return to.Write(instruction, operands[0], mapped, type);
  }
  if (instruction.opcode == Opcode::kGetctarank && operands.size() == 2) {
    Value* rank = RankOf(to, instruction, to.Read(operands[1], type));
    return to.Write(instruction, operands[0], rank, Type::kU32);
  }
  if (instruction.opcode != Opcode::kCreatepolicy) return to.Unsupported(instruction);
  Value* policy = to.scalar() ? Constant(code.ScalarType(type), 0)
                              : llvm::Constant::getNullValue(Lanes(code.ScalarType(type)));
  to.Write(instruction, operands[0], policy, type);
}

}  // namespace torpor::emulator
