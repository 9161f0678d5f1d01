#include "emulator/ptx/lane_shape.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "emulator/ptx/dataflow.h"
#include "emulator/ptx/liveness.h"

namespace torpor::ptx {
namespace {

constexpr unsigned kLaneBits = 5;
constexpr unsigned kMaxAlignment = 32;

unsigned Alignment(std::uint64_t value) {
  return value == 0 ? kMaxAlignment
                    : std::min(kMaxAlignment, static_cast<unsigned>(std::countr_zero(value)));
}

// Strides are kept as signed values of the operation's width.
std::int64_t Wrap(std::int64_t value, unsigned bits) {
  if (bits == 0 || bits >= 64) return value;
  const unsigned shift = 64 - bits;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << shift) >> shift;
}

std::int64_t Multiply(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

std::int64_t Add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

LaneShape Scaled(const LaneShape& shape, std::int64_t factor, unsigned bits, unsigned alignment) {
  if (shape.rows()) return LaneShape::Rows(Wrap(Multiply(shape.stride, factor), bits));
  return LaneShape::Linear(Wrap(Multiply(shape.stride, factor), bits),
                           Wrap(Multiply(shape.row_stride, factor), bits), alignment);
}

LaneShape Sum(const LaneShape& a, const LaneShape& b, std::int64_t sign, unsigned bits) {
  const std::int64_t stride = Wrap(Add(a.stride, Multiply(sign, b.stride)), bits);
  if (a.rows() || b.rows()) return LaneShape::Rows(stride);
  return LaneShape::Linear(stride, Wrap(Add(a.row_stride, Multiply(sign, b.row_stride)), bits),
                           std::min(a.alignment, b.alignment));
}

}  // namespace

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
  FindConstants();
  Analyse();
}

// nvcc puts many immediates into registers first.
void LaneAnalysis::FindConstants() {
  constants_.assign(function_.registers.size(), std::nullopt);
  std::vector<unsigned> writes(function_.registers.size());
  for (const Instruction& instruction : function_.instructions) {
    ForEachDefinition(function_, instruction, [&](std::uint32_t reg) { ++writes[reg]; });
  }
  for (const Instruction& instruction : function_.instructions) {
    const bool plain = instruction.opcode == Opcode::kMov && instruction.operands.size() == 2 &&
                       instruction.guard == kNoIndex &&
                       instruction.operands[0].kind == Operand::Kind::kRegister &&
                       instruction.operands[1].kind == Operand::Kind::kInteger;
    if (!plain || writes[instruction.operands[0].reg] != 1) continue;
    constants_[instruction.operands[0].reg] = instruction.operands[1].bits;
  }
}

std::optional<std::uint64_t> LaneAnalysis::ConstantOf(const Operand& operand) const {
  if (operand.kind == Operand::Kind::kInteger) return operand.bits;
  if (operand.kind == Operand::Kind::kRegister) return constants_[operand.reg];
  return std::nullopt;
}

// Both halves only ever go from better to worse, so this ends.
void LaneAnalysis::Analyse() {
  do {
    reconvergence_ = std::make_unique<Reconvergence>(flow_, divergent_);
    FindWaitingRegisters();
    while (UpdateRegisters()) {
    }
  } while (UpdateBranches());
  // What is never written is read as garbage; any shape will do.
  for (LaneShape& shape : registers_) {
    if (shape.kind == LaneShape::Kind::kUnknown) shape = LaneShape::Uniform();
  }
}

void LaneAnalysis::FindWaitingRegisters() {
  waiting_registers_.assign(flow_.blocks.size(), BitSet(function_.registers.size()));
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    reconvergence_->pending(b).ForEach(
        [&](std::size_t waiting) { waiting_registers_[b].UniteWith(live_[waiting]); });
  }
}

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

bool LaneAnalysis::UpdateBranches() {
  bool changed = false;
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    if (divergent_[b] || flow_.blocks[b].branch == kNoIndex) continue;
    const Instruction& branch = function_.instructions[flow_.blocks[b].branch];
    bool diverges = branch.guard != kNoIndex && !registers_[branch.guard].uniform();
    if (flow_.blocks[b].terminator == Terminator::kIndexed) {
      diverges |= !OperandShape(branch.operands.at(0), 32).uniform();
    }
    divergent_[b] = diverges;
    changed |= diverges;
  }
  return changed;
}

bool LaneAnalysis::Widen(std::uint32_t reg, const LaneShape& shape) {
  LaneShape& current = registers_[reg];
  if (shape.kind == LaneShape::Kind::kUnknown || current.varying()) return false;
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

LaneShape LaneAnalysis::OperandShape(const Operand& operand, unsigned bits) const {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return registers_[operand.reg];
    case Operand::Kind::kInteger:
      return LaneShape::Uniform(Alignment(
          static_cast<std::uint64_t>(Wrap(static_cast<std::int64_t>(operand.bits), bits))));
    case Operand::Kind::kSpecial:
      return SpecialShape(operand.special);
    case Operand::Kind::kSymbol:
      return SymbolShape(operand.symbol);
    case Operand::Kind::kAddress:
      if (operand.reg != kNoIndex) return registers_[operand.reg];
      return operand.symbol == kNoIndex ? LaneShape::Uniform() : SymbolShape(operand.symbol);
    case Operand::Kind::kVector: {
      LaneShape joined = LaneShape::Uniform();
      for (const Operand& element : operand.elements) {
        const LaneShape shape = OperandShape(element, bits);
        if (shape.kind == LaneShape::Kind::kUnknown) return shape;
        if (!shape.uniform()) joined = LaneShape::Varying();
      }
      return joined;
    }
    default:
      return LaneShape::Uniform();
  }
}

LaneShape LaneAnalysis::SymbolShape(std::uint32_t symbol) const {
  const Variable& variable = module_.variables[symbol];
  if (variable.space == Space::kLocal) return LaneNumber(local_stride_, 0);
  return LaneShape::Uniform();
}

// The shape of the lane's number times `scale`.
LaneShape LaneAnalysis::LaneNumber(std::int64_t scale, unsigned alignment) const {
  const unsigned width = block_shape_.row_width();
  return LaneShape::Linear(scale, width == 32 ? 0 : Multiply(scale, width), alignment);
}

// In how many low bits the lanes of a rising shape differ, all of which are 0 in lane 0; nothing
// if that is not proven.
std::optional<unsigned> LaneAnalysis::StepBits(const LaneShape& shape) const {
  constexpr std::int64_t kLargest = std::int64_t{1} << 20;
  if (!shape.linear() || shape.stride < 0 || shape.stride > kLargest || shape.row_stride < 0 ||
      shape.row_stride > kLargest) {
    return std::nullopt;
  }
  const unsigned width = block_shape_.row_width();
  const std::int64_t span = (width - 1) * shape.stride + (32 / width - 1) * shape.row_stride;
  const auto bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(span)));
  if (shape.alignment < bits) return std::nullopt;
  return bits;
}

// Whether no lane's value, read as an unsigned number of the same width, wraps.
bool LaneAnalysis::StaysInRange(const LaneShape& shape) const {
  return shape.row_uniform() || StepBits(shape).has_value();
}

// nvcc computes unsigned values, hashes for example, with signed instructions too: their large
// strides wrap. A small stride that wraps within a warp is a signed index that overflows, which
// C++ leaves undefined.
bool LaneAnalysis::KeepsStepsWhenWidened(const LaneShape& shape, Type from) const {
  constexpr std::int64_t kLargest = std::int64_t{1} << 20;
  if (!IsSigned(from)) return StaysInRange(shape);
  return std::abs(shape.stride) <= kLargest && std::abs(shape.row_stride) <= kLargest;
}

LaneShape LaneAnalysis::SpecialShape(SpecialRegister special) const {
  const unsigned lanes = block_shape_.row_lanes;
  const auto row_bits = static_cast<unsigned>(std::countr_zero(block_shape_.row_width()));
  switch (special) {
    case SpecialRegister::kTidX:
      if (lanes == 0) return LaneShape::Varying();
      return LaneShape::Linear(1, 0, lanes == 32 ? kLaneBits : kMaxAlignment);
    case SpecialRegister::kTidY:
      if (lanes == 0) return LaneShape::Varying();
      return lanes == 32 ? LaneShape::Uniform() : LaneShape::Linear(0, 1, kLaneBits - row_bits);
    case SpecialRegister::kTidZ:
      return lanes == 0 ? LaneShape::Varying() : LaneShape::Uniform();
    case SpecialRegister::kNtidX:
      if (block_shape_.whole_rows) return LaneShape::Uniform(kLaneBits);
      return LaneShape::Uniform(lanes == 0 || lanes == 32 ? 0 : row_bits);
    case SpecialRegister::kLaneid:
      return LaneNumber(1, kMaxAlignment);
    case SpecialRegister::kLanemaskEq:
    case SpecialRegister::kLanemaskLe:
    case SpecialRegister::kLanemaskLt:
    case SpecialRegister::kLanemaskGe:
    case SpecialRegister::kLanemaskGt:
      return LaneShape::Varying();
    default:
      return LaneShape::Uniform();
  }
}

LaneShape LaneAnalysis::ResultShape(const Instruction& instruction) const {
  switch (instruction.opcode) {
    case Opcode::kAdd:
      return SumShape(instruction, 1);
    case Opcode::kSub:
      return SumShape(instruction, -1);
    case Opcode::kMul:
      return ProductShape(instruction);
    case Opcode::kMad:
      return MultiplyAddShape(instruction);
    case Opcode::kShl:
      return ShiftLeftShape(instruction);
    case Opcode::kShr:
      return ShiftRightShape(instruction);
    case Opcode::kAnd:
      return AndShape(instruction);
    case Opcode::kOr:
      return OrShape(instruction);
    case Opcode::kCvt:
      return ConvertShape(instruction);
    case Opcode::kMov:
    case Opcode::kCvta: {
      const bool plain = instruction.operands.size() == 2 &&
                         instruction.operands[0].kind == Operand::Kind::kRegister &&
                         instruction.operands[1].kind != Operand::Kind::kVector;
      if (!plain) return LaneWiseShape(instruction);
      return OperandShape(instruction.operands[1], BitWidth(instruction.type()));
    }
    case Opcode::kLd:
    case Opcode::kLdu:
      return LoadShape(instruction);
    case Opcode::kShfl:
      return ShuffleShape(instruction);
    case Opcode::kVote:
    case Opcode::kRedux:
      return GroupShape(instruction);
    case Opcode::kBar:
    case Opcode::kBarrier:
    case Opcode::kActivemask:
      return LaneShape::Uniform();
    case Opcode::kAtom:
    case Opcode::kMatch:
    case Opcode::kFns:
      return LaneShape::Varying();
    default:
      return LaneWiseShape(instruction);
  }
}

// The same operation on each lane: uniform, or uniform in each row, if all it reads is.
LaneShape LaneAnalysis::LaneWiseShape(const Instruction& instruction) const {
  LaneShape joined = LaneShape::Uniform();
  const auto join = [&](const LaneShape& shape) {
    if (shape.kind == LaneShape::Kind::kUnknown || joined.kind == LaneShape::Kind::kUnknown) {
      joined.kind = LaneShape::Kind::kUnknown;
    } else if (!shape.row_uniform() || joined.varying()) {
      joined = LaneShape::Varying();
    } else if (!shape.uniform()) {
      joined = LaneShape::Rows(0);
    }
  };
  for (std::size_t i = HasDestination(instruction) ? 1 : 0; i < instruction.operands.size(); ++i) {
    join(OperandShape(instruction.operands[i], 64));
  }
  if (ReadsCarry(instruction)) join(registers_[function_.carry]);
  return joined;
}

LaneShape LaneAnalysis::SumShape(const Instruction& instruction, int sign) const {
  const unsigned bits = BitWidth(instruction.type());
  const bool plain = !IsFloat(instruction.type()) && !instruction.Has(Modifier::kSat) &&
                     !instruction.Has(Modifier::kCc) && instruction.operands.size() == 3;
  if (!plain) return LaneWiseShape(instruction);
  const LaneShape a = OperandShape(instruction.operands[1], bits);
  const LaneShape b = OperandShape(instruction.operands[2], bits);
  if (!a.stepped() || !b.stepped()) return LaneWiseShape(instruction);
  return Sum(a, b, sign, bits);
}

LaneShape LaneAnalysis::ProductShape(const Instruction& instruction) const {
  const Type type = instruction.type();
  const bool wide = instruction.Has(Modifier::kWide);
  const bool plain = !IsFloat(type) && instruction.operands.size() >= 3 &&
                     (wide || instruction.Has(Modifier::kLo));
  if (!plain) return LaneWiseShape(instruction);
  const unsigned bits = BitWidth(type);
  LaneShape a = OperandShape(instruction.operands[1], bits);
  LaneShape b = OperandShape(instruction.operands[2], bits);
  if (!a.stepped() || !b.stepped()) return LaneWiseShape(instruction);
  const unsigned alignment = std::min(kMaxAlignment, a.alignment + b.alignment);
  if (a.uniform() && b.uniform()) return LaneShape::Uniform(alignment);
  const Operand* factor = &instruction.operands[2];
  if (a.uniform()) {
    std::swap(a, b);
    factor = &instruction.operands[1];
  }
  const auto constant = ConstantOf(*factor);
  if (!constant) return LaneWiseShape(instruction);
  if (wide && !KeepsStepsWhenWidened(a, type)) return LaneShape::Varying();
  auto value = static_cast<std::int64_t>(*constant);
  value = wide && !IsSigned(type)
              ? static_cast<std::int64_t>(
                    *constant & ((bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1)))
              : Wrap(value, bits);
  return Scaled(a, value, wide ? 2 * bits : bits, alignment);
}

LaneShape LaneAnalysis::MultiplyAddShape(const Instruction& instruction) const {
  const Type type = instruction.type();
  if (IsFloat(type) || instruction.operands.size() != 4 || instruction.Has(Modifier::kSat) ||
      instruction.Has(Modifier::kCc)) {
    return LaneWiseShape(instruction);
  }
  const LaneShape product = ProductShape(instruction);
  const unsigned bits = BitWidth(type) * (instruction.Has(Modifier::kWide) ? 2 : 1);
  const LaneShape c = OperandShape(instruction.operands[3], bits);
  if (!product.stepped() || !c.stepped()) return LaneWiseShape(instruction);
  return Sum(product, c, 1, bits);
}

LaneShape LaneAnalysis::ShiftLeftShape(const Instruction& instruction) const {
  const unsigned bits = BitWidth(instruction.type());
  if (instruction.operands.size() != 3) return LaneWiseShape(instruction);
  const LaneShape a = OperandShape(instruction.operands[1], bits);
  const auto amount = ConstantOf(instruction.operands[2]);
  if (!a.stepped() || !amount || *amount >= std::min(bits, 63U)) return LaneWiseShape(instruction);
  const auto shift = static_cast<unsigned>(*amount);
  return Scaled(a, std::int64_t{1} << shift, bits, std::min(kMaxAlignment, a.alignment + shift));
}

// What differs between the lanes is shifted out: threadIdx.x / 32 for example.
LaneShape LaneAnalysis::ShiftRightShape(const Instruction& instruction) const {
  if (instruction.operands.size() != 3) return LaneWiseShape(instruction);
  const LaneShape a = OperandShape(instruction.operands[1], BitWidth(instruction.type()));
  const auto amount = ConstantOf(instruction.operands[2]);
  const auto steps = StepBits(a);
  const bool gone = !a.uniform() && amount && steps && *amount >= *steps;
  return gone ? LaneShape::Uniform() : LaneWiseShape(instruction);
}

// The mask keeps all that differs between the lanes, or nothing of it: threadIdx.x & 31 and
// threadIdx.x & ~31 for example.
LaneShape LaneAnalysis::AndShape(const Instruction& instruction) const {
  if (instruction.operands.size() != 3) return LaneWiseShape(instruction);
  const LaneShape a = OperandShape(instruction.operands[1], BitWidth(instruction.type()));
  const auto mask = ConstantOf(instruction.operands[2]);
  const auto steps = StepBits(a);
  if (a.uniform() || !mask || !steps) return LaneWiseShape(instruction);
  const std::uint64_t differing = (std::uint64_t{1} << *steps) - 1;
  if ((*mask & differing) == differing) return a;
  return (*mask & differing) == 0 ? LaneShape::Uniform() : LaneWiseShape(instruction);
}

// nvcc writes an addition whose operands share no bit as `or`.
LaneShape LaneAnalysis::OrShape(const Instruction& instruction) const {
  if (instruction.operands.size() != 3) return LaneWiseShape(instruction);
  const LaneShape a = OperandShape(instruction.operands[1], 64);
  const auto immediate = ConstantOf(instruction.operands[2]);
  if (!a.linear() || a.uniform() || !immediate) return LaneWiseShape(instruction);
  const unsigned free_bits = std::min(a.alignment, Alignment(static_cast<std::uint64_t>(a.stride)));
  const bool disjoint = (*immediate >> free_bits) == 0;
  if (!disjoint) return LaneWiseShape(instruction);
  return LaneShape::Linear(a.stride, a.row_stride, Alignment(*immediate));
}

LaneShape LaneAnalysis::ConvertShape(const Instruction& instruction) const {
  if (instruction.types.size() != 2 || instruction.operands.size() != 2 ||
      instruction.Has(Modifier::kSat)) {
    return LaneWiseShape(instruction);
  }
  const Type to = instruction.types[0];
  const Type from = instruction.types[1];
  const LaneShape a = OperandShape(instruction.operands[1], BitWidth(from));
  if (IsFloat(to) || IsFloat(from) || !a.stepped()) return LaneWiseShape(instruction);
  if (BitWidth(to) <= BitWidth(from)) {
    // A register wider than the type keeps the extension of the narrow value.
    const unsigned reg_bits = instruction.operands[0].kind == Operand::Kind::kRegister
                                  ? BitWidth(function_.registers[instruction.operands[0].reg])
                                  : 0;
    if (reg_bits > BitWidth(to)) return LaneWiseShape(instruction);
    return Scaled(a, 1, BitWidth(to), a.alignment);
  }
  if (BitWidth(from) < 32) return LaneWiseShape(instruction);
  if (KeepsStepsWhenWidened(a, from)) return a;
  return LaneWiseShape(instruction);
}

LaneShape LaneAnalysis::LoadShape(const Instruction& instruction) const {
  if (instruction.operands.size() < 2) return LaneShape::Varying();
  const Operand& address = instruction.operands[1];
  if (address.symbol != kNoIndex) {
    const Variable& variable = module_.variables[address.symbol];
    // Only a kernel's own parameters are the same for all lanes.
    const bool call_parameter = variable.space == Space::kParam &&
                                !(function_.is_kernel && IsKernelParameter(address.symbol));
    if (call_parameter) return LaneShape::Varying();
  }
  const LaneShape shape = LaneWiseShape(instruction);
  // Lanes that load nothing have no value, not that of their row.
  return shape.rows() ? LaneShape::Varying() : shape;
}

bool LaneAnalysis::IsKernelParameter(std::uint32_t symbol) const {
  const auto& parameters = function_.parameters;
  return std::find(parameters.begin(), parameters.end(), symbol) != parameters.end();
}

// Groups of lanes may vote or reduce side by side, each with its own member mask.
LaneShape LaneAnalysis::GroupShape(const Instruction& instruction) const {
  if (instruction.operands.size() < 3) return LaneShape::Varying();
  const LaneShape members = OperandShape(instruction.operands[2], 32);
  if (members.kind == LaneShape::Kind::kUnknown) return members;
  return members.uniform() ? LaneShape::Uniform() : LaneShape::Varying();
}

// Every lane reads the same lane, or the value is the same anyway.
LaneShape LaneAnalysis::ShuffleShape(const Instruction& instruction) const {
  if (instruction.operands.size() < 4) return LaneShape::Varying();
  const bool sets_predicate = instruction.operands[0].kind == Operand::Kind::kVector;
  const LaneShape value = OperandShape(instruction.operands[1], 32);
  const LaneShape lane = OperandShape(instruction.operands[2], 32);
  const LaneShape clamp = OperandShape(instruction.operands[3], 32);
  for (const LaneShape& shape : {value, lane, clamp}) {
    if (shape.kind == LaneShape::Kind::kUnknown) return shape;
  }
  const bool whole_warp = ConstantOf(instruction.operands[3]) == 31;
  if (!sets_predicate && value.uniform()) return LaneShape::Uniform();
  const bool broadcast = instruction.Has(Modifier::kIdx) && lane.uniform() && whole_warp;
  return broadcast ? LaneShape::Uniform() : LaneShape::Varying();
}

}  // namespace torpor::ptx
