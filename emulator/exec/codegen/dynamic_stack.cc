// alloca, stacksave and stackrestore. The warp has one stack of local memory: an allocation is as
// large for every lane as the largest of them.
#include <algorithm>
#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Opcode;

namespace {

constexpr std::uint64_t kStackAlignment = 16;
constexpr std::uint64_t kMaxAlignment = 4096;
// More than there ever is; sums of it do not wrap.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32;

}  // namespace

bool FunctionEmitter::UsesDynamicStack() const {
  return std::any_of(function_.instructions.begin(), function_.instructions.end(),
                     [](const Instruction& instruction) {
                       return instruction.opcode == Opcode::kAlloca ||
                              instruction.opcode == Opcode::kStackrestore;
                     });
}

llvm::Value* FunctionEmitter::LocalTop() {
  return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), context_, offsetof(WarpContext, local));
}

// Ends the kernel if the stack has no room up to `top`.
void FunctionEmitter::MoveLocalTop(Value* top) {
  Value* end = ContextField(offsetof(WarpContext, local_end), b_.getPtrTy());
  llvm::BasicBlock* overflow = NewBlock("overflow");
  llvm::BasicBlock* fits = NewBlock("fits");
  b_.CreateCondBr(b_.CreateICmpUGT(top, end), overflow, fits);
  b_.SetInsertPoint(overflow);
  CallRuntime(offsetof(RuntimeCalls, local_overflow), b_.getVoidTy(), {context_});
  b_.CreateBr(fits);
  b_.SetInsertPoint(fits);
  b_.CreateStore(top, LocalTop());
}

// alloca d, bytes{, alignment}
void FunctionEmitter::EmitAlloca(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  const Type type = instruction.type();
  if (type != Type::kU32 && type != Type::kU64) return Unsupported(instruction);
  std::uint64_t alignment = kStackAlignment;
  if (instruction.operands.size() > 2) {
    const auto given = lanes_.ConstantOf(instruction.operands[2]);
    const bool fits = given && *given <= kMaxAlignment && (*given & (*given - 1)) == 0;
    if (!fits) return Unsupported(instruction, "alignment");
    alignment = std::max(alignment, *given);
  }
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    Value* bytes = ReadVector(instruction.operands[1], type);
    bytes = Resize(bytes, 64, false);
    bytes = b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, bytes, Like(bytes, kMaxBytes));
    Value* most = b_.CreateIntMaxReduce(b_.CreateSelect(mask, bytes, Like(bytes, 0)));
    const auto round_up = [&](Value* number) {
      Value* rest = Like(number, alignment - 1);
      return b_.CreateAnd(b_.CreateAdd(number, rest), b_.CreateNot(rest));
    };
    Value* each = round_up(most);
    Value* base = round_up(ContextField(offsetof(WarpContext, local), b_.getInt64Ty(), false));
    Value* all = b_.CreateMul(each, Like(each, kWarpLanes));
    MoveLocalTop(Pointer({}, b_.CreateAdd(base, all)));
    std::vector<llvm::Constant*> lanes;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) lanes.push_back(b_.getInt64(lane));
    Value* offsets = b_.CreateMul(Spread(each), llvm::ConstantVector::get(lanes));
    Write(instruction, instruction.operands[0], b_.CreateAdd(Spread(base), offsets), Type::kU64);
  });
}

void FunctionEmitter::EmitStackSave(const Instruction& instruction) {
  if (!Expect(instruction, 1)) return;
  Value* top = ContextField(offsetof(WarpContext, local), b_.getInt64Ty(), false);
  Write(instruction, instruction.operands[0], scalar_ ? top : Spread(top), Type::kU64);
}

// Others may hold what they have allocated behind it, so it frees nothing unless all lanes run.
void FunctionEmitter::EmitStackRestore(const Instruction& instruction) {
  if (!Expect(instruction, 1)) return;
  Value* saved = ReadScalar(instruction.operands[0], Type::kU64);
  Value* everyone = ContextField(offsetof(WarpContext, mask), b_.getInt32Ty());
  Value* all = b_.CreateICmpEQ(MaskBits(ActiveMask(instruction)), everyone);
  Value* top = ContextField(offsetof(WarpContext, local), b_.getInt64Ty(), false);
  // A wild value must not move the stack elsewhere.
  Value* frame = b_.CreatePtrToInt(local_frame_, b_.getInt64Ty());
  Value* sane = b_.CreateAnd(b_.CreateICmpULE(saved, top), b_.CreateICmpUGE(saved, frame));
  Value* next = b_.CreateSelect(b_.CreateAnd(all, sane), saved, top);
  b_.CreateStore(next, LocalTop());
}

}  // namespace torpor::emulator
