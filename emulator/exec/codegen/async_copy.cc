// cp.async: a copy from global to shared memory. It is complete when the instruction is, so
// committing and waiting are nothing.
#include <array>

#include "emulator/exec/codegen/function_emitter.h"

namespace torpor::emulator {

using ptx::Space;

// cp.async.ca.shared.global [to], [from], bytes{, source bytes}
void FunctionEmitter::EmitAsyncCopy(const Instruction& instruction) {
  if (!instruction.Has(Modifier::kAsync)) return Unsupported(instruction);
  if (instruction.Has(Modifier::kCommitGroup) || instruction.Has(Modifier::kWaitGroup) ||
      instruction.Has(Modifier::kWaitAll)) {
    return;
  }
  const auto& operands = instruction.operands;
  const bool plain = instruction.Has(Modifier::kShared) && instruction.Has(Modifier::kGlobal) &&
                     (operands.size() == 3 || operands.size() == 4) &&
                     operands[0].kind == Operand::Kind::kAddress &&
                     operands[1].kind == Operand::Kind::kAddress;
  const auto bytes = plain ? lanes_.ConstantOf(operands[2]) : std::nullopt;
  if (!bytes || (*bytes != 4 && *bytes != 8 && *bytes != 16)) return Unsupported(instruction);
  const auto words = static_cast<unsigned>(*bytes / 4);
  const Access access{b_.getInt32Ty(), 4, words};
  Value* mask = ActiveMask(instruction);
  IfAny(mask, [&] {
    const Address to = AddressOf(operands[0], Space::kShared);
    const Address from = AddressOf(operands[1], Space::kGlobal);
    if (to.value == nullptr || from.value == nullptr) return;
    if (operands.size() == 3) return Store(to, access, Load(from, access, mask), mask);
    // What the source lacks is zero.
    Value* available = ReadVector(operands[3], Type::kU32);
    const Access word{b_.getInt32Ty(), 4, 1};
    for (unsigned i = 0; i < words; ++i) {
      const std::uint64_t offset = std::uint64_t{4} * i;
      Value* present = b_.CreateICmpUGT(available, Like(available, offset));
      Value* wanted = b_.CreateAnd(mask, present);
      Value* copied = llvm::Constant::getNullValue(Lanes(b_.getInt32Ty()));
      Address lanes = Advanced(from, offset);
      lanes.value = LaneAddresses(lanes);
      lanes.shape = ptx::LaneShape::Varying();
      copied = b_.CreateSelect(wanted, Load(lanes, word, wanted)[0], copied);
      Store(Advanced(to, offset), word, {copied}, mask);
    }
  });
}

}  // namespace torpor::emulator
