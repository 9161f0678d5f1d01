// alloca, stacksave and stackrestore. All lanes share the warp's stack of local memory: every lane
// gets as many bytes as the largest request.
#include <algorithm>
#include <cstddef>

#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Type;

namespace {

constexpr std::uint64_t kStackAlignment = 16;
constexpr std::uint64_t kMaxAlignment = 4096;
// Larger than any stack; sums do not wrap.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32;

}  // namespace

// alloca d, bytes{, alignment}
void EmitAlloca(OperandBuilder& to, LocalStack& stack, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2)) return;
  const Type type = instruction.type();
  if (type != Type::kU32 && type != Type::kU64) return to.Unsupported(instruction);
  std::uint64_t alignment = kStackAlignment;
  if (instruction.operands.size() > 2) {
    const auto given = to.source().lanes.ConstantOf(instruction.operands[2]);
    const bool fits = given && *given <= kMaxAlignment && (*given & (*given - 1)) == 0;
    if (!fits) return to.Unsupported(instruction, "alignment");
    alignment = std::max(alignment, *given);
  }
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    Value* bytes = to.ReadVector(instruction.operands[1], type);
    bytes = code.Resize(bytes, 64, false);
    bytes = code->CreateBinaryIntrinsic(llvm::Intrinsic::umin, bytes, Like(bytes, kMaxBytes));
    Value* largest = code->CreateIntMaxReduce(code->CreateSelect(mask, bytes, Like(bytes, 0)));
    const auto round_up = [&](Value* number) {
      Value* rest = Like(number, alignment - 1);
      return code->CreateAnd(code->CreateAdd(number, rest), code->CreateNot(rest));
    };
    Value* each = round_up(largest);
    Value* base = round_up(stack.Top(code->getInt64Ty()));
    Value* all = code->CreateMul(each, Like(each, kWarpLanes));
    stack.MoveTop(code->CreateGEP(code->getInt8Ty(),
                                  llvm::ConstantPointerNull::get(code->getPtrTy()),
                                  code->CreateAdd(base, all)));
    std::vector<llvm::Constant*> lanes;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) lanes.push_back(code->getInt64(lane));
    Value* offsets = code->CreateMul(code.Spread(each), llvm::ConstantVector::get(lanes));
    to.Write(instruction, instruction.operands[0], code->CreateAdd(code.Spread(base), offsets),
             Type::kU64);
  });
}

void EmitStackSave(OperandBuilder& to, LocalStack& stack, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 1)) return;
  Value* top = stack.Top(code->getInt64Ty());
  to.Write(instruction, instruction.operands[0], to.scalar() ? top : code.Spread(top), Type::kU64);
}

// Frees memory only if all lanes run: waiting lanes may own later allocations.
void EmitStackRestore(OperandBuilder& to, LocalStack& stack, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 1)) return;
  Value* saved = to.ReadScalar(instruction.operands[0], Type::kU64);
  Value* everyone = to.context().Field(offsetof(WarpContext, mask), code->getInt32Ty());
  Value* all = code->CreateICmpEQ(code.MaskBits(to.masks().Active(instruction)), everyone);
  Value* top = stack.Top(code->getInt64Ty());
  // A wild value must not move the stack elsewhere.
  Value* frame = code->CreatePtrToInt(stack.frame(), code->getInt64Ty());
  Value* sane = code->CreateAnd(code->CreateICmpULE(saved, top), code->CreateICmpUGE(saved, frame));
  Value* next = code->CreateSelect(code->CreateAnd(all, sane), saved, top);
  stack.SetTop(next);
}

}  // namespace torpor::emulator
