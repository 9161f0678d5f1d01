#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/ptx/bit_set.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/lane_shape.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/reconvergence.h"

namespace torpor::ptx {

// Finds the shape of every register of a function, the branches that may diverge, and where lanes
// wait for each other. A register that some lanes may still need while others overwrite it is
// varying, and its writes need a blend. The arguments must outlive the analysis.
class LaneAnalysis {
 public:
  LaneAnalysis(const Module& module, const Function& function, const ControlFlow& flow,
               const BlockShape& block_shape, std::int64_t local_stride);

  const LaneShape& shape(std::uint32_t reg) const { return registers_[reg]; }
  bool divergent(std::uint32_t block) const { return divergent_[block]; }
  const Reconvergence& reconvergence() const { return *reconvergence_; }
  // Whether a write to `reg` in `block` must keep the values of lanes that wait elsewhere.
  bool needs_blend(std::uint32_t block, std::uint32_t reg) const {
    return waiting_registers_[block].Contains(reg);
  }

  // Returns the constant value of an operand: an immediate, or a register that only one instruction
  // writes, with an immediate. Nullopt for other operands.
  std::optional<std::uint64_t> ConstantOf(const Operand& operand) const;

  // Returns the only instruction that writes `reg`, or null.
  const Instruction* OnlyWrite(std::uint32_t reg) const { return only_writes_[reg]; }
  // Returns the registers whose values at the begin of `block` some lane may still read.
  BitSet RegistersAt(std::uint32_t block) const;

  // The shape of an instruction's result, before any blend.
  LaneShape ResultShape(const Instruction& instruction) const;
  LaneShape OperandShape(const Operand& operand, unsigned bits) const;

 private:
  void FindOnlyWrites();
  void Analyse();
  void Converge();
  void FindWaitingRegisters();
  bool UpdateRegisters();
  bool UpdateBranches();
  bool Widen(std::uint32_t reg, const LaneShape& shape);

  // result_shape.cc
  LaneShape LaneNumber(std::int64_t scale, unsigned alignment) const;
  std::optional<unsigned> StepBits(const LaneShape& shape) const;
  std::optional<unsigned> DifferingBits(const LaneShape& shape) const;
  bool StaysInRange(const LaneShape& shape) const;
  bool KeepsStepsWhenWidened(const LaneShape& shape, Type from) const;
  LaneShape SpecialShape(SpecialRegister special) const;
  LaneShape SymbolShape(std::uint32_t symbol) const;
  LaneShape SumShape(const Instruction& instruction, int sign) const;
  LaneShape ProductShape(const Instruction& instruction) const;
  LaneShape MultiplyAddShape(const Instruction& instruction) const;
  LaneShape ShiftLeftShape(const Instruction& instruction) const;
  LaneShape ShiftRightShape(const Instruction& instruction) const;
  LaneShape AndShape(const Instruction& instruction) const;
  LaneShape OrShape(const Instruction& instruction) const;
  LaneShape ComparisonShape(const Instruction& instruction) const;
  LaneShape ConvertShape(const Instruction& instruction) const;
  LaneShape LoadShape(const Instruction& instruction) const;
  LaneShape GroupShape(const Instruction& instruction) const;
  LaneShape ShuffleShape(const Instruction& instruction) const;
  LaneShape LaneWiseShape(const Instruction& instruction) const;
  // Considers the operands [first, end) only.
  LaneShape LaneWiseShape(const Instruction& instruction, std::size_t first, std::size_t end) const;

  const Module& module_;
  const Function& function_;
  const ControlFlow& flow_;
  BlockShape block_shape_;
  std::int64_t local_stride_;
  std::vector<BitSet> live_;
  std::vector<BitSet> waiting_registers_;  // a block -> registers live where lanes wait
  std::vector<LaneShape> registers_;
  std::vector<const Instruction*> only_writes_;
  std::vector<bool> divergent_;
  std::unique_ptr<Reconvergence> reconvergence_;
};

}  // namespace torpor::ptx
