// Shapes of instructions' results, from the shapes of their operands.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "emulator/ptx/dataflow.h"
#include "emulator/ptx/lane_analysis.h"

namespace torpor::ptx {
namespace {

constexpr unsigned kLaneBits = 5;

}  // namespace

// `bits` is the width in which an immediate is used.
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

// Local arrays lie at a fixed distance from lane to lane; other symbols have one address.
LaneShape LaneAnalysis::SymbolShape(std::uint32_t symbol) const {
  const Variable& variable = module_.variables[symbol];
  const bool local =
      variable.space == Space::kLocal || (variable.space == Space::kParam && !function_.is_kernel);
  if (local) return LaneNumber(local_stride_, 0);
  return LaneShape::Uniform();
}

// The shape of the lane's number times `scale`.
LaneShape LaneAnalysis::LaneNumber(std::int64_t scale, unsigned alignment) const {
  const unsigned width = block_shape_.row_width();
  return LaneShape::Linear(scale, width == 32 ? 0 : Multiply(scale, width), alignment);
}

// Returns the number of low bits in which the lanes of a rising shape differ, provided that the
// bits are 0 in lane 0. Nullopt without proof.
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

// Returns the number of low bits in which the lanes differ, whatever lane 0 holds. Nullopt if any
// bits may differ.
std::optional<unsigned> LaneAnalysis::DifferingBits(const LaneShape& shape) const {
  if (!shape.varying()) return StepBits(shape);
  return shape.low_bits < LaneShape::kAllBits ? std::optional(shape.low_bits) : std::nullopt;
}

// Whether no lane's value, read as an unsigned number of the same width, wraps.
bool LaneAnalysis::StaysInRange(const LaneShape& shape) const {
  const bool is_same_in_rows = shape.uniform() || (shape.rows() && shape.stride == 0);
  return is_same_in_rows || StepBits(shape).has_value();
}

// nvcc uses signed instructions for unsigned values too, hashes for example: their large strides
// wrap. A small stride that wraps within a warp is a signed index that overflows, undefined in C++.
bool LaneAnalysis::KeepsStepsWhenWidened(const LaneShape& shape, Type from) const {
  constexpr std::int64_t kLargest = std::int64_t{1} << 20;
  if (!IsSigned(from)) return StaysInRange(shape);
  return std::abs(shape.stride) <= kLargest && std::abs(shape.row_stride) <= kLargest;
}

// Shapes of special registers, for the block shape of this variant.
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

// Dispatches to the rule of the opcode; opcodes without a rule are computed lane by lane, or vary.
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
    case Opcode::kSetp:
      return ComparisonShape(instruction);
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
    case Opcode::kAlloca:
    case Opcode::kAtom:
    case Opcode::kElect:
    case Opcode::kLdmatrix:
    case Opcode::kMatch:
    case Opcode::kTex:
    case Opcode::kTld4:
    case Opcode::kSuld:
    case Opcode::kSuq:
    case Opcode::kTxq:
    case Opcode::kMbarrier:
    case Opcode::kMma:
    case Opcode::kMovmatrix:
    case Opcode::kWmma:
      return LaneShape::Varying();
    default:
      return LaneWiseShape(instruction);
  }
}

// An operation on each lane by itself: uniform, or uniform in each row, if all operands are.
LaneShape LaneAnalysis::LaneWiseShape(const Instruction& instruction) const {
  return LaneWiseShape(instruction, HasDestination(instruction) ? 1 : 0,
                       instruction.operands.size());
}

// An unknown operand makes the result unknown, and a varying operand makes the result varying.
LaneShape LaneAnalysis::LaneWiseShape(const Instruction& instruction, std::size_t first,
                                      std::size_t end) const {
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
  for (std::size_t i = first; i < end; ++i) join(OperandShape(instruction.operands[i], 64));
  if (ReadsCarry(instruction)) join(registers_[function_.carry]);
  return joined;
}

// Sums of linear shapes are linear: strides add up.
LaneShape LaneAnalysis::SumShape(const Instruction& instruction, int sign) const {
  const unsigned bits = BitWidth(instruction.type());
  const bool plain = !IsFloat(instruction.type()) && !IsIntegerPair(instruction.type()) &&
                     !instruction.Has(Modifier::kSat) && !instruction.Has(Modifier::kCc) &&
                     instruction.operands.size() == 3;
  if (!plain) return LaneWiseShape(instruction);
  const LaneShape a = OperandShape(instruction.operands[1], bits);
  const LaneShape b = OperandShape(instruction.operands[2], bits);
  if (!a.stepped() || !b.stepped()) return LaneWiseShape(instruction);
  return Sum(a, b, sign, bits);
}

// A product of uniform values is uniform; a product with a constant scales the strides. A wide
// product also needs a proof that the narrow values do not wrap.
LaneShape LaneAnalysis::ProductShape(const Instruction& instruction) const {
  const Type type = instruction.type();
  const bool wide = instruction.Has(Modifier::kWide);
  const bool plain = !IsFloat(type) && instruction.operands.size() >= 3 &&
                     (wide || instruction.Has(Modifier::kLo));
  if (!plain) return LaneWiseShape(instruction);
  const unsigned bits = BitWidth(type);
  LaneShape a = OperandShape(instruction.operands[1], bits);
  LaneShape b = OperandShape(instruction.operands[2], bits);
  // The addend of mad has no part in the product.
  const LaneShape any_product = LaneWiseShape(instruction, 1, 3);
  if (!a.stepped() || !b.stepped()) return any_product;
  const unsigned alignment = std::min(kMaxAlignment, a.alignment + b.alignment);
  if (a.uniform() && b.uniform()) return LaneShape::Uniform(alignment);
  const Operand* factor = &instruction.operands[2];
  if (a.uniform()) {
    std::swap(a, b);
    factor = &instruction.operands[1];
  }
  const auto constant = ConstantOf(*factor);
  if (!constant) return any_product;
  if (wide && !KeepsStepsWhenWidened(a, type)) return LaneShape::Varying();
  auto value = static_cast<std::int64_t>(*constant);
  value = wide && !IsSigned(type)
              ? static_cast<std::int64_t>(
                    *constant & ((bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1)))
              : Wrap(value, bits);
  return Scaled(a, value, wide ? 2 * bits : bits, alignment);
}

// mad: the shape of the product, then of the sum.
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

// A shift by a constant scales the strides by a power of two.
LaneShape LaneAnalysis::ShiftLeftShape(const Instruction& instruction) const {
  const unsigned bits = BitWidth(instruction.type());
  if (instruction.operands.size() != 3) return LaneWiseShape(instruction);
  const LaneShape a = OperandShape(instruction.operands[1], bits);
  const auto amount = ConstantOf(instruction.operands[2]);
  if (!a.stepped() || !amount || *amount >= std::min(bits, 63U)) return LaneWiseShape(instruction);
  const auto shift = static_cast<unsigned>(*amount);
  return Scaled(a, std::int64_t{1} << shift, bits, std::min(kMaxAlignment, a.alignment + shift));
}

// The shift removes some or all bits that differ between lanes: threadIdx.x / 32 for example.
LaneShape LaneAnalysis::ShiftRightShape(const Instruction& instruction) const {
  if (instruction.operands.size() != 3) return LaneWiseShape(instruction);
  const LaneShape a = OperandShape(instruction.operands[1], BitWidth(instruction.type()));
  const auto amount = ConstantOf(instruction.operands[2]);
  const auto steps = DifferingBits(a);
  if (a.uniform() || !amount || !steps) return LaneWiseShape(instruction);
  if (*amount >= *steps) return LaneShape::Uniform();
  return LaneShape::Varying(*steps - static_cast<unsigned>(*amount));
}

// The mask keeps all bits that differ between lanes, or none: threadIdx.x & 31 and threadIdx.x &
// ~31 for example.
LaneShape LaneAnalysis::AndShape(const Instruction& instruction) const {
  if (instruction.operands.size() != 3) return LaneWiseShape(instruction);
  const LaneShape a = OperandShape(instruction.operands[1], BitWidth(instruction.type()));
  const auto mask = ConstantOf(instruction.operands[2]);
  const auto steps = DifferingBits(a);
  if (a.uniform() || !mask || !steps) return LaneWiseShape(instruction);
  const std::uint64_t differing = (std::uint64_t{1} << *steps) - 1;
  if ((*mask & differing) == differing) return a;
  return (*mask & differing) == 0 ? LaneShape::Uniform() : LaneShape::Varying(*steps);
}

// nvcc writes an addition of operands without common bits as `or`.
LaneShape LaneAnalysis::OrShape(const Instruction& instruction) const {
  if (instruction.operands.size() != 3) return LaneWiseShape(instruction);
  const LaneShape a = OperandShape(instruction.operands[1], 64);
  const auto immediate = ConstantOf(instruction.operands[2]);
  if (!a.linear() || a.uniform() || !immediate) return LaneWiseShape(instruction);
  const unsigned free_bits = std::min({a.alignment, Alignment(static_cast<std::uint64_t>(a.stride)),
                                       Alignment(static_cast<std::uint64_t>(a.row_stride))});
  const bool disjoint = (*immediate >> free_bits) == 0;
  if (!disjoint) return LaneWiseShape(instruction);
  return LaneShape::Linear(a.stride, a.row_stride, std::min(a.alignment, Alignment(*immediate)));
}

// Lanes that differ in their low bits only compare alike with a number whose low bits are 0:
// threadIdx.x < 32 for example.
LaneShape LaneAnalysis::ComparisonShape(const Instruction& instruction) const {
  const bool plain = instruction.operands.size() == 3 && !IsFloat(instruction.type()) &&
                     !IsIntegerPair(instruction.type()) &&
                     instruction.operands[0].kind == Operand::Kind::kRegister;
  if (!plain) return LaneWiseShape(instruction);
  const unsigned bits = BitWidth(instruction.type());
  const auto steps = StepBits(OperandShape(instruction.operands[1], bits));
  const LaneShape limit = OperandShape(instruction.operands[2], bits);
  if (!steps || *steps == 0 || !limit.uniform()) return LaneWiseShape(instruction);
  const auto constant = ConstantOf(instruction.operands[2]);
  const bool before = instruction.Has(Modifier::kLt) || instruction.Has(Modifier::kGe) ||
                      instruction.Has(Modifier::kLo) || instruction.Has(Modifier::kHs);
  const bool behind = instruction.Has(Modifier::kLe) || instruction.Has(Modifier::kGt) ||
                      instruction.Has(Modifier::kLs) || instruction.Has(Modifier::kHi);
  const unsigned alignment = behind && constant ? Alignment(*constant + 1) : limit.alignment;
  const bool apart = before || (behind && constant);
  return apart && alignment >= *steps ? LaneShape::Uniform() : LaneWiseShape(instruction);
}

// Widening keeps strides if the narrow values do not wrap; narrowing keeps strides unless the
// register is wider than the type.
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

// A load has the shape of its address, except for parameters of calls.
LaneShape LaneAnalysis::LoadShape(const Instruction& instruction) const {
  if (instruction.operands.size() < 2) return LaneShape::Varying();
  const Operand& address = instruction.operands[1];
  if (address.symbol != kNoIndex) {
    const Variable& variable = module_.variables[address.symbol];
    // Only a kernel's own parameters are the same for all lanes.
    const bool call_parameter = variable.space == Space::kParam &&
                                !(function_.is_kernel && function_.HasParameter(address.symbol));
    if (call_parameter) return LaneShape::Varying();
  }
  const LaneShape shape = LaneWiseShape(instruction);
  // Lanes that load nothing lack the value of their row.
  return shape.rows() ? LaneShape::Varying() : shape;
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
  // Other members may bring another value.
  const bool own = !instruction.converged;
  if (own && !sets_predicate && value.uniform()) return LaneShape::Uniform();
  const bool broadcast = instruction.Has(Modifier::kIdx) && lane.uniform() && whole_warp;
  return broadcast ? LaneShape::Uniform() : LaneShape::Varying();
}

}  // namespace torpor::ptx
