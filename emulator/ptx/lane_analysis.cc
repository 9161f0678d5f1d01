#include "emulator/ptx/lane_analysis.h"

#include "emulator/ptx/dataflow.h"
#include "emulator/ptx/liveness.h"

namespace torpor::ptx {

LaneAnalysis::LaneAnalysis(const Module& module, const Function& function, const ControlFlow& flow,
                           const BlockShape& block_shape, std::int64_t local_stride)
    : module_(module),
      function_(function),
      flow_(flow),
      block_shape_(block_shape),
      local_stride_(local_stride),
      live_(LiveAtEntry(function, flow)),
      registers_(function.registers.size()),
      divergent_(flow.blocks.size()) {
  FindOnlyWrites();
  Analyse();
}

// Finds the registers with a single writing instruction.
void LaneAnalysis::FindOnlyWrites() {
  only_writes_.assign(function_.registers.size(), nullptr);
  std::vector<unsigned> writes(function_.registers.size());
  for (const Instruction& instruction : function_.instructions) {
    ForEachDefinition(function_, instruction, [&](std::uint32_t reg) {
      only_writes_[reg] = ++writes[reg] == 1 ? &instruction : nullptr;
    });
  }
}

// nvcc puts many immediates into registers first.
std::optional<std::uint64_t> LaneAnalysis::ConstantOf(const Operand& operand) const {
  if (operand.kind == Operand::Kind::kInteger) return operand.bits;
  if (operand.kind != Operand::Kind::kRegister) return std::nullopt;
  const Instruction* write = OnlyWrite(operand.reg);
  const bool plain = write != nullptr && write->opcode == Opcode::kMov &&
                     write->operands.size() == 2 && write->guard == kNoIndex &&
                     write->operands[0].kind == Operand::Kind::kRegister &&
                     write->operands[1].kind == Operand::Kind::kInteger;
  return plain ? std::optional(write->operands[1].bits) : std::nullopt;
}

BitSet LaneAnalysis::RegistersAt(std::uint32_t block) const {
  BitSet registers = live_[block];
  registers.UniteWith(waiting_registers_[block]);
  return registers;
}

void LaneAnalysis::Analyse() {
  Converge();
  // A register read before being written holds garbage, so any shape will do. A register written
  // later, such as a select of itself and another register, has only waited for this shape.
  for (LaneShape& shape : registers_) {
    if (shape.kind == LaneShape::Kind::kUnknown) shape = LaneShape::Uniform();
  }
  Converge();
}

// Terminates, since both halves only go from better to worse shapes.
void LaneAnalysis::Converge() {
  do {
    reconvergence_ = std::make_unique<Reconvergence>(flow_, divergent_);
    FindWaitingRegisters();
    while (UpdateRegisters()) {
    }
  } while (UpdateBranches());
}

// Registers that must survive a block: live at any block where lanes may wait meanwhile.
void LaneAnalysis::FindWaitingRegisters() {
  waiting_registers_.assign(flow_.blocks.size(), BitSet(function_.registers.size()));
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    reconvergence_->pending(b).ForEach(
        [&](std::size_t waiting) { waiting_registers_[b].UniteWith(live_[waiting]); });
  }
}

// Recomputes the shapes of all results from the shapes of operands. Returns whether any changed.
bool LaneAnalysis::UpdateRegisters() {
  bool changed = false;
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    for (std::uint32_t i = flow_.blocks[b].first; i < flow_.blocks[b].end; ++i) {
      const Instruction& instruction = function_.instructions[i];
      LaneShape shape = ResultShape(instruction);
      if (instruction.guard != kNoIndex && !registers_[instruction.guard].linear()) {
        shape = LaneShape::Varying();
      }
      ForEachDefinition(function_, instruction, [&](std::uint32_t reg) {
        changed |= Widen(reg, needs_blend(b, reg) ? LaneShape::Varying() : shape);
      });
    }
  }
  return changed;
}

// Marks branches whose guard or index is not uniform as divergent. Returns whether any changed.
bool LaneAnalysis::UpdateBranches() {
  bool changed = false;
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    if (divergent_[b] || flow_.blocks[b].branch == kNoIndex) continue;
    const Instruction& branch = function_.instructions[flow_.blocks[b].branch];
    bool diverges = branch.guard != kNoIndex && !registers_[branch.guard].uniform();
    diverges |= branch.opcode == Opcode::kCall;  // from which some lanes may not return
    if (flow_.blocks[b].terminator == Terminator::kIndexed) {
      diverges |= !OperandShape(branch.operands[0], 32).uniform();
    }
    divergent_[b] = diverges;
    changed |= diverges;
  }
  return changed;
}

// Joins `shape` into the register's shape, which only becomes less precise. Returns whether the
// register changed.
bool LaneAnalysis::Widen(std::uint32_t reg, const LaneShape& shape) {
  LaneShape& current = registers_[reg];
  if (shape.kind == LaneShape::Kind::kUnknown) return false;
  if (current.varying()) {
    const unsigned low_bits = shape.varying() ? shape.low_bits : LaneShape::kAllBits;
    if (low_bits <= current.low_bits) return false;
    current.low_bits = low_bits;
    return true;
  }
  const bool narrow = BitWidth(function_.registers[reg]) <= 8 && !shape.uniform();
  if (current.kind == LaneShape::Kind::kUnknown && !narrow) {
    current = shape;
    return true;
  }
  if (shape.varying() || narrow || shape.stride != current.stride) {
    current = LaneShape::Varying();
    return true;
  }
  if (current.rows()) return false;
  if (shape.rows() || shape.row_stride != current.row_stride) {
    current = LaneShape::Rows(shape.stride);
    return true;
  }
  if (shape.alignment >= current.alignment) return false;
  current.alignment = shape.alignment;
  return true;
}

}  // namespace torpor::ptx
