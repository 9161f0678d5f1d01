#include "nvidia/machine_code/instruction.h"

namespace torpor::sass {
namespace {

bool WideIsC(unsigned form) {
  return form == kImmediateC || form == kConstantC || form == kUniformC;
}

}  // namespace

bool Register::is_fixed() const {
  switch (file) {
    case RegisterFile::kRegister:
      return number == kZero;
    case RegisterFile::kUniform:
      return number == kUniformZero;
    default:
      return number == kTrue;
  }
}

Register Register::Next(unsigned by) const {
  if (is_fixed()) return *this;
  const unsigned last = file == RegisterFile::kRegister ? kZero : kUniformZero;
  const unsigned next = number + by;
  return {file, static_cast<std::uint8_t>(next < last ? next : last)};
}

PredicateOperand MachineInstruction::guard() const { return PredicateSourceAt(12, 15); }

Register MachineInstruction::RegisterAt(unsigned first) const {
  return is_uniform() ? UniformRegisterAt(first) : ThreadRegisterAt(first);
}

Register MachineInstruction::ThreadRegisterAt(unsigned first) const {
  return {RegisterFile::kRegister, static_cast<std::uint8_t>(Bits(first, 8))};
}

Register MachineInstruction::UniformRegisterAt(unsigned first) const {
  return {RegisterFile::kUniform, static_cast<std::uint8_t>(Bits(first, 6))};
}

Register MachineInstruction::PredicateAt(unsigned first) const {
  return {is_uniform() ? RegisterFile::kUniformPredicate : RegisterFile::kPredicate,
          static_cast<std::uint8_t>(Bits(first, 3))};
}

PredicateOperand MachineInstruction::PredicateSourceAt(unsigned first, unsigned negation) const {
  return {PredicateAt(first), Bit(negation)};
}

SourceOperand MachineInstruction::RegisterSource(unsigned first) const {
  SourceOperand source;
  source.reg = RegisterAt(first);
  return source;
}

SourceOperand MachineInstruction::WideSource() const {
  SourceOperand source;
  switch (form()) {
    case kImmediateB:
    case kImmediateC:
      source.kind = SourceOperand::Kind::kImmediate;
      source.immediate = static_cast<std::uint32_t>(Bits(32, 32));
      return source;
    case kConstantB:
    case kConstantC:
      source.kind =
          is_bindless() ? SourceOperand::Kind::kBindlessConstant : SourceOperand::Kind::kConstant;
      source.reg = {RegisterFile::kUniform, static_cast<std::uint8_t>(Bits(32, 6))};
      source.bank = constant_bank();
      source.offset = constant_offset();
      break;
    case kUniformB:
    case kUniformC:
      source.reg = UniformRegisterAt(32);
      break;
    default:
      source.reg = RegisterAt(32);
      break;
  }
  source.absolute = Bit(62);
  source.negated = Bit(63);
  source.half = static_cast<unsigned>(Bits(60, 2));
  return source;
}

SourceOperand MachineInstruction::a() const {
  SourceOperand source = RegisterSource(24);
  source.negated = Bit(72);
  source.absolute = Bit(73);
  source.half = static_cast<unsigned>(Bits(74, 2));
  return source;
}

SourceOperand MachineInstruction::NarrowSource() const {
  SourceOperand source = RegisterSource(64);
  source.absolute = Bit(74);
  source.negated = Bit(75);
  source.half = static_cast<unsigned>(Bits(81, 2));
  return source;
}

SourceOperand MachineInstruction::b() const {
  return WideIsC(form()) ? NarrowSource() : WideSource();
}

SourceOperand MachineInstruction::c() const {
  return WideIsC(form()) ? WideSource() : NarrowSource();
}

}  // namespace torpor::sass
