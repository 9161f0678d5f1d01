// mbarrier, and arrivals of asynchronous copies. The copies themselves complete at once.
#include "emulator/exec/interface/mbarrier.h"

#include <cstddef>

#include "emulator/exec/codegen/opcodes.h"

namespace torpor::emulator {

using llvm::Value;
using ptx::Instruction;
using ptx::Modifier;
using ptx::Operand;
using ptx::Type;

namespace {

// Generic addresses of all lanes, on the stack.
Value* SpillAddresses(LaneBuilder& code, MemoryAccess& memory, const LaneAddress& address) {
  Value* pointers = memory.addresses().Pointer(address, memory.addresses().LaneAddresses(address));
  return code.Spill(code->CreatePtrToInt(pointers, Lanes(code->getInt64Ty())));
}

// Returns the results of all lanes.
Value* CallMbarrier(OperandBuilder& to, MemoryAccess& memory, MbarrierOperation operation,
                    const LaneAddress& barrier, Value* argument, Value* mask) {
  LaneBuilder& code = to.code();
  memory.check().Check(barrier, 8, mask);
  Value* arguments = code.Spill(code.Resize(argument, 64, false));
  Value* results = code.LaneArray(code->getInt64Ty());
  to.context().Call(offsetof(RuntimeCalls, mbarrier), code->getVoidTy(),
                    {to.context().pointer(), code.MaskBits(mask),
                     code->getInt32(static_cast<std::uint32_t>(operation)),
                     SpillAddresses(code, memory, barrier), arguments, results});
  return code.Unspill(results, code->getInt64Ty());
}

// An arrival returns the whole word as state.
void EmitPendingCount(OperandBuilder& to, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (!to.Expect(instruction, 2)) return;
  Value* state = to.ReadVector(instruction.operands[1], Type::kB64);
  Value* count = code->CreateLShr(state, Like(state, Mbarrier::kPendingShift));
  to.Write(instruction, instruction.operands[0],
           code->CreateAnd(count, Like(count, Mbarrier::kMaxCount)), Type::kU64);
}

}  // namespace

// mbarrier.init [barrier], count; .inval [barrier]; .expect_tx and .complete_tx [barrier], bytes;
// .arrive and .arrive_drop state, [barrier]{, count}; .arrive.expect_tx state, [barrier], bytes;
// .test_wait and .try_wait done, [barrier], state or parity{, time}
void EmitMbarrier(OperandBuilder& to, MemoryAccess& memory, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (instruction.Has(Modifier::kPendingCount)) return EmitPendingCount(to, instruction);
  const bool drops = instruction.Has(Modifier::kArriveDrop);
  const bool arrives = instruction.Has(Modifier::kArrive) || drops;
  const bool tests = instruction.Has(Modifier::kTestWait) || instruction.Has(Modifier::kTryWait);
  const std::size_t at = arrives || tests ? 1 : 0;
  const auto& operands = instruction.operands;
  const bool needs_argument = tests || instruction.Has(Modifier::kInit) ||
                              instruction.Has(Modifier::kExpectTx) ||
                              instruction.Has(Modifier::kCompleteTx);
  if (operands.size() <= at + (needs_argument ? 1 : 0) ||
      operands[at].kind != Operand::Kind::kAddress) {
    return to.Unsupported(instruction, "operands");
  }
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    const LaneAddress barrier =
        memory.addresses().Of(operands[at], memory.addresses().SpaceOf(instruction, operands[at]));
    if (barrier.value == nullptr) return;
    const bool state = tests && !instruction.Has(Modifier::kParity);
    Value* argument = operands.size() > at + 1
                          ? to.ReadVector(operands[at + 1], state ? Type::kB64 : Type::kU32)
                          : code.Spread(code->getInt32(1));
    if (arrives && instruction.Has(Modifier::kExpectTx)) {
      CallMbarrier(to, memory, MbarrierOperation::kExpect, barrier, argument, mask);
      argument = code.Spread(code->getInt32(1));
    }
    const MbarrierOperation operation =
        drops                                  ? MbarrierOperation::kDrop
        : arrives                              ? MbarrierOperation::kArrive
        : state                                ? MbarrierOperation::kTestState
        : tests                                ? MbarrierOperation::kTestParity
        : instruction.Has(Modifier::kInit)     ? MbarrierOperation::kInit
        : instruction.Has(Modifier::kInval)    ? MbarrierOperation::kInvalidate
        : instruction.Has(Modifier::kExpectTx) ? MbarrierOperation::kExpect
                                               : MbarrierOperation::kComplete;
    Value* result = CallMbarrier(to, memory, operation, barrier, argument, mask);
    if (arrives) to.Write(instruction, operands[0], result, Type::kB64);
    if (!tests) return;
    to.Write(instruction, operands[0], code->CreateICmpNE(result, Like(result, 0)), Type::kPred);
  });
}

// cp.async.mbarrier.arrive [barrier]: arrives now, as the thread's copies are complete. Without
// .noinc the barrier would also expect an additional arrival, so both cancel out.
void EmitCopyArrival(OperandBuilder& to, MemoryAccess& memory, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (instruction.operands.size() != 1 || instruction.operands[0].kind != Operand::Kind::kAddress) {
    return to.Unsupported(instruction, "operands");
  }
  if (!instruction.Has(Modifier::kNoinc)) return;
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    const Operand& place = instruction.operands[0];
    const LaneAddress barrier =
        memory.addresses().Of(place, memory.addresses().SpaceOf(instruction, place));
    if (barrier.value == nullptr) return;
    CallMbarrier(to, memory, MbarrierOperation::kArrive, barrier, code.Spread(code->getInt32(1)),
                 mask);
  });
}

// cp.async.bulk.to.from [to], [from], bytes{, [barrier]}: by each active thread.
void EmitBulkCopy(OperandBuilder& to, MemoryAccess& memory, const Instruction& instruction) {
  LaneBuilder& code = to.code();
  if (instruction.Has(Modifier::kPrefetch)) return;
  const bool completes = instruction.Has(Modifier::kBytes);
  const auto& operands = instruction.operands;
  bool fits = operands.size() == (completes ? 4U : 3U);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    fits = fits && (i >= operands.size() || operands[i].kind == Operand::Kind::kAddress);
  }
  if (!fits || !instruction.Has(Modifier::kShared)) return to.Unsupported(instruction);
  // Between two blocks of a cluster both are shared.
  const ptx::Space other =
      instruction.Has(Modifier::kGlobal) ? ptx::Space::kGlobal : ptx::Space::kShared;
  const bool to_shared = completes;
  Value* mask = to.masks().Active(instruction);
  to.masks().IfAny(mask, [&] {
    const LaneAddress destination =
        memory.addresses().Of(operands[0], to_shared ? ptx::Space::kShared : other);
    const LaneAddress from =
        memory.addresses().Of(operands[1], to_shared ? other : ptx::Space::kShared);
    if (destination.value == nullptr || from.value == nullptr) return;
    Value* bytes = code.Resize(to.ReadVector(operands[2], Type::kU32), 64, false);
    to.context().Call(
        offsetof(RuntimeCalls, bulk_copy), code->getVoidTy(),
        {to.context().pointer(), code.MaskBits(mask), SpillAddresses(code, memory, destination),
         SpillAddresses(code, memory, from), code.Spill(bytes)});
    if (!completes) return;
    const LaneAddress barrier = memory.addresses().Of(operands[3], ptx::Space::kShared);
    if (barrier.value == nullptr) return;
    CallMbarrier(to, memory, MbarrierOperation::kComplete, barrier, bytes, mask);
  });
}

}  // namespace torpor::emulator
