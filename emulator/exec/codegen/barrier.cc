// bar, barrier and nanosleep: where warps wait for each other.
#include <cstddef>

#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Operand;
using ptx::Type;

namespace {

// bar.sync 0: __syncthreads.
void EmitBlockBarrier(OperandBuilder& to, Suspension& suspension, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  to.masks().IfAny(to.masks().Active(instruction), [&] {
    suspension.WaitUnless(to.context().Call(offsetof(RuntimeCalls, block_barrier),
                                            code->getInt32Ty(), {to.context().pointer()}),
                          instruction);
  });
  to.masks().Reload();
}

void WaitAtBarrier(OperandBuilder& to, Suspension& suspension, const Instruction& instruction,
                   const std::vector<Value*>& arguments) {
  LaneBuilder& code = to.code();
  suspension.WaitUnless(
      to.context().Call(offsetof(RuntimeCalls, barrier), code->getInt32Ty(), arguments),
      instruction);
}

// Reads WarpContext::barrier_result after the barrier: the count of true predicates, or whether all
// or any hold.
void WriteBarrierResult(OperandBuilder& to, const Instruction& instruction, BarrierMode mode) {
  LaneBuilder& code = to.code();
  Value* result =
      to.context().Field(offsetof(WarpContext, barrier_result), code->getInt32Ty(), false);
  Value* count = code->CreateLShr(result, 1);
  const Operand& destination = instruction.operands[0];
  if (mode == BarrierMode::kPopc) return to.Write(instruction, destination, count, Type::kU32);
  Value* holds = mode == BarrierMode::kAnd ? code->CreateTrunc(result, code->getInt1Ty())
                                           : code->CreateICmpNE(count, code->getInt32(0));
  to.Write(instruction, destination, holds, Type::kPred);
}

// barrier.cluster.arrive and .wait.
void EmitClusterBarrier(OperandBuilder& to, Suspension& suspension,
                        const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const BarrierMode mode =
      instruction.Has(Modifier::kWait) ? BarrierMode::kSync : BarrierMode::kArrive;
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    WaitAtBarrier(
        to, suspension, instruction,
        {to.context().pointer(), code->getInt32(kClusterBarrier), code->getInt32(0),
         code.MaskBits(mask), code->getInt32(0), code->getInt32(static_cast<std::uint32_t>(mode))});
  });
  to.masks().Reload();
}

}  // namespace

// bar.sync a{, b}; bar.arrive a, b; bar.red.op d, a{, b}, c; barrier is the same.
void EmitBarrier(OperandBuilder& to, Suspension& suspension, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  const bool cluster = instruction.operands.empty() && instruction.Has(Modifier::kCluster);
  if (cluster) return EmitClusterBarrier(to, suspension, instruction);
  if (instruction.Has(Modifier::kWarp)) {
    // All members have arrived; see BranchBuilder::EndWarpBarrier.
    code->CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
    return;
  }
  const bool reduce = instruction.Has(Modifier::kRed);
  std::size_t next = reduce ? 1 : 0;
  const std::size_t end = instruction.operands.size() - (reduce ? 1 : 0);
  if (instruction.operands.size() < (reduce ? 3U : 1U)) {
    return to.Unsupported(instruction, "operands");
  }
  const bool whole_block = !reduce && !instruction.Has(Modifier::kArrive) &&
                           instruction.operands.size() == 1 &&
                           to.source().lanes.ConstantOf(instruction.operands[0]) == 0U;
  if (whole_block) return EmitBlockBarrier(to, suspension, instruction);
  Value* id = to.ReadScalar(instruction.operands[next++], Type::kU32);
  Value* threads =
      next < end ? to.ReadScalar(instruction.operands[next], Type::kU32) : code->getInt32(0);
  BarrierMode mode = instruction.Has(Modifier::kArrive) ? BarrierMode::kArrive : BarrierMode::kSync;
  Value* mask = to.masks().Active(instruction);
  Value* predicates = code->getInt32(0);
  if (reduce) {
    mode = instruction.Has(Modifier::kPopc)  ? BarrierMode::kPopc
           : instruction.Has(Modifier::kAnd) ? BarrierMode::kAnd
                                             : BarrierMode::kOr;
    Value* predicate = to.ReadVector(instruction.operands[end], Type::kPred);
    predicates = code.MaskBits(code->CreateAnd(mask, predicate));
  }
  to.masks().IfAny(mask, [&] {
    WaitAtBarrier(to, suspension, instruction,
                  {to.context().pointer(), id, threads, code.MaskBits(mask), predicates,
                   code->getInt32(static_cast<std::uint32_t>(mode))});
    if (reduce) WriteBarrierResult(to, instruction, mode);
  });
  to.masks().Reload();
}

void EmitNanosleep(OperandBuilder& to, Suspension& suspension, const Instruction& instruction) {
  ContextBuilder& context = to.context();
  suspension.WaitUnless(
      context.Call(offsetof(RuntimeCalls, yield), to.code()->getInt32Ty(), {context.pointer()}),
      instruction);
}

}  // namespace torpor::emulator
