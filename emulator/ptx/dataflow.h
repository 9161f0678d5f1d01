#pragma once

#include "emulator/ptx/module.h"

namespace torpor::ptx {

// Whether the instruction writes operands[0].
inline bool HasDestination(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kSt:
    case Opcode::kRed:
    case Opcode::kApplypriority:
    case Opcode::kBra:
    case Opcode::kBrx:
    case Opcode::kBrkpt:
    case Opcode::kCall:
    case Opcode::kConverge:
    case Opcode::kCp:
    case Opcode::kDeposit:
    case Opcode::kDiscard:
    case Opcode::kExit:
    case Opcode::kFence:
    case Opcode::kGriddepcontrol:
    case Opcode::kMembar:
    case Opcode::kNanosleep:
    case Opcode::kPmevent:
    case Opcode::kPrefetch:
    case Opcode::kPrefetchu:
    case Opcode::kRet:
    case Opcode::kSured:
    case Opcode::kSust:
    case Opcode::kSetmaxnreg:
    case Opcode::kStackrestore:
    case Opcode::kStmatrix:
    case Opcode::kTrap:
    case Opcode::kUnknown:
      return false;
    case Opcode::kBar:
    case Opcode::kBarrier:
      return instruction.Has(Modifier::kRed);
    case Opcode::kMbarrier:
      return instruction.Has(Modifier::kArrive) || instruction.Has(Modifier::kArriveDrop) ||
             instruction.Has(Modifier::kTestWait) || instruction.Has(Modifier::kTryWait) ||
             instruction.Has(Modifier::kPendingCount);
    case Opcode::kWmma:
      return instruction.operands.empty() ||
             instruction.operands[0].kind == Operand::Kind::kVector;  // a store has an address
    default:
      return true;
  }
}

// Whether the instruction reads the carry register.
inline bool ReadsCarry(const Instruction& instruction) {
  return instruction.opcode == Opcode::kAddc || instruction.opcode == Opcode::kSubc ||
         instruction.opcode == Opcode::kMadc;
}

// Calls visit(register) for each register in the operand, vector elements and addresses included.
template <typename Visit>
void ForEachRegister(const Operand& operand, Visit visit) {
  if (operand.reg != kNoIndex) visit(operand.reg);
  for (const Operand& element : operand.elements) ForEachRegister(element, visit);
}

// Calls visit(register) for each register that the instruction writes.
template <typename Visit>
void ForEachDefinition(const Function& function, const Instruction& instruction, Visit visit) {
  if (HasDestination(instruction) && !instruction.operands.empty()) {
    ForEachRegister(instruction.operands[0], visit);
  }
  if (instruction.Has(Modifier::kCc)) visit(function.carry);
}

// Calls visit(register) for each register that the instruction reads.
template <typename Visit>
void ForEachUse(const Function& function, const Instruction& instruction, Visit visit) {
  for (std::size_t i = HasDestination(instruction) ? 1 : 0; i < instruction.operands.size(); ++i) {
    ForEachRegister(instruction.operands[i], visit);
  }
  if (instruction.guard != kNoIndex) visit(instruction.guard);
  if (ReadsCarry(instruction)) visit(function.carry);
}

}  // namespace torpor::ptx
