// mbarrier, and what asynchronous copies do to one. The copies themselves are done at once.
#include "emulator/exec/interface/mbarrier.h"

#include <cstddef>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

// Generic addresses of all lanes, on the stack.
llvm::Value* FunctionEmitter::SpillAddresses(const Address& address) {
  Value* pointers = Pointer(address, LaneAddresses(address));
  return Spill(b_.CreatePtrToInt(pointers, Lanes(b_.getInt64Ty())));
}

// Returns the results of all lanes.
llvm::Value* FunctionEmitter::CallMbarrier(MbarrierOperation operation, const Address& barrier,
                                           Value* argument, Value* mask) {
  CheckAccess(barrier, 8, mask);
  Value* arguments = Spill(Resize(argument, 64, false));
  Value* results = LaneArray(b_.getInt64Ty());
  CallRuntime(offsetof(RuntimeCalls, mbarrier), b_.getVoidTy(),
              {context_, MaskBits(mask), b_.getInt32(static_cast<std::uint32_t>(operation)),
               SpillAddresses(barrier), arguments, results});
  return Unspill(results, b_.getInt64Ty());
}

// The state that an arrival returns is the whole word.
void FunctionEmitter::EmitPendingCount(const Instruction& instruction) {
  if (!Expect(instruction, 2)) return;
  Value* state = ReadVector(instruction.operands[1], Type::kB64);
  Value* count = b_.CreateLShr(state, Like(state, Mbarrier::kPendingShift));
  Write(instruction, instruction.operands[0], b_.CreateAnd(count, Like(count, Mbarrier::kMaxCount)),
        Type::kU64);
}

// mbarrier.init [barrier], count; .inval [barrier]; .expect_tx and .complete_tx [barrier], bytes;
// .arrive and .arrive_drop state, [barrier]{, count}; .arrive.expect_tx state, [barrier], bytes;
// .test_wait and .try_wait done, [barrier], state or parity{, time}
void FunctionEmitter::EmitMbarrier(const Instruction& instruction) {
  if (instruction.Has(Modifier::kPendingCount)) return EmitPendingCount(instruction);
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
    return Unsupported(instruction, "operands");
  }
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    const Address barrier = AddressOf(operands[at], SpaceOf(instruction, operands[at]));
    if (barrier.value == nullptr) return;
    const bool state = tests && !instruction.Has(Modifier::kParity);
    Value* argument = operands.size() > at + 1
                          ? ReadVector(operands[at + 1], state ? Type::kB64 : Type::kU32)
                          : Spread(b_.getInt32(1));
    if (arrives && instruction.Has(Modifier::kExpectTx)) {
      CallMbarrier(MbarrierOperation::kExpect, barrier, argument, mask);
      argument = Spread(b_.getInt32(1));
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
    Value* result = CallMbarrier(operation, barrier, argument, mask);
    if (arrives) Write(instruction, operands[0], result, Type::kB64);
    if (!tests) return;
    Write(instruction, operands[0], b_.CreateICmpNE(result, Like(result, 0)), Type::kPred);
  });
}

// cp.async.mbarrier.arrive [barrier]: the thread's copies are complete, so it arrives now. Unless
// .noinc the barrier was to expect one arrival more for it, which makes up for the arrival.
void FunctionEmitter::EmitCopyArrival(const Instruction& instruction) {
  if (instruction.operands.size() != 1 || instruction.operands[0].kind != Operand::Kind::kAddress) {
    return Unsupported(instruction, "operands");
  }
  if (!instruction.Has(Modifier::kNoinc)) return;
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    const Operand& place = instruction.operands[0];
    const Address barrier = AddressOf(place, SpaceOf(instruction, place));
    if (barrier.value == nullptr) return;
    CallMbarrier(MbarrierOperation::kArrive, barrier, Spread(b_.getInt32(1)), mask);
  });
}

// cp.async.bulk.to.from [to], [from], bytes{, [barrier]}: by each active thread.
void FunctionEmitter::EmitBulkCopy(const Instruction& instruction) {
  if (instruction.Has(Modifier::kPrefetch)) return;
  const bool completes = instruction.Has(Modifier::kBytes);
  const auto& operands = instruction.operands;
  bool fits = operands.size() == (completes ? 4U : 3U);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    fits = fits && (i >= operands.size() || operands[i].kind == Operand::Kind::kAddress);
  }
  if (!fits || !instruction.Has(Modifier::kShared)) return Unsupported(instruction);
  // Between two blocks of a cluster both are shared.
  const ptx::Space other =
      instruction.Has(Modifier::kGlobal) ? ptx::Space::kGlobal : ptx::Space::kShared;
  const bool to_shared = completes;
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    const Address to = AddressOf(operands[0], to_shared ? ptx::Space::kShared : other);
    const Address from = AddressOf(operands[1], to_shared ? other : ptx::Space::kShared);
    if (to.value == nullptr || from.value == nullptr) return;
    Value* bytes = Resize(ReadVector(operands[2], Type::kU32), 64, false);
    CallRuntime(offsetof(RuntimeCalls, bulk_copy), b_.getVoidTy(),
                {context_, MaskBits(mask), SpillAddresses(to), SpillAddresses(from), Spill(bytes)});
    if (!completes) return;
    const Address barrier = AddressOf(operands[3], ptx::Space::kShared);
    if (barrier.value == nullptr) return;
    CallMbarrier(MbarrierOperation::kComplete, barrier, bytes, mask);
  });
}

}  // namespace torpor::emulator
