// Atomic operations.
#include <array>
#include <string>

#include "emulator/sass/address.h"
#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

struct AtomicType {
  std::string_view name;  // in PTX
  bool is_pair = false;
};

constexpr std::array<AtomicType, 8> kTypes = {
    {{"u32"}, {"s32"}, {"u64", true}, {"f32"}, {"f16x2"}, {"s64", true}, {"f64", true}, {""}}};
constexpr std::array<std::string_view, 16> kOperators = {
    "add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "", "", "", "", "", "", ""};

constexpr unsigned kUniform = 64;

// Returns PTX's name of the operation with its type; empty names are not supported.
std::string OperationOf(Emitter& to, std::string_view operation, const AtomicType& type) {
  const bool is_bits = operation == "and" || operation == "or" || operation == "xor" ||
                       operation == "exch" || operation == "cas";
  if (type.name.empty() || operation.empty()) to.Unsupported("of a kind that is not known");
  if (is_bits) return std::string(operation) + (type.is_pair ? ".b64" : ".b32");
  if (type.name == "f16x2") return std::string(operation) + ".noftz.f16x2";
  // The signed sum has the same bits, and PTX only has the unsigned operation.
  if (type.name == "s64" && operation == "add") return "add.u64";
  return std::string(operation) + "." + std::string(type.name);
}

Value Data(Emitter& to, const AtomicType& type, const Register& reg) {
  return type.is_pair ? to.ReadPair(reg) : to.Read(reg);
}

// `space` is "global." and so on.
void Update(Emitter& to, const MachineInstruction& instruction, const std::string& space,
            const Address& address) {
  const AtomicType type = kTypes[instruction.Bits(73, 3)];
  const std::string operation = OperationOf(to, kOperators[instruction.Bits(87, 4)], type);
  const Register target = instruction.destination();
  std::vector<Value> values = {type.is_pair ? to.WritePair(target) : to.Write(target)};
  if (address.base) values.push_back(*address.base);
  values.push_back(Data(to, type, instruction.ThreadRegisterAt(32)));
  to.Emit("atom." + space + operation + " ?, " + address.text + ", ?", std::move(values));
}

// The result is the old value, or whether the new value was stored.
void CompareAndSwap(Emitter& to, const MachineInstruction& instruction, const std::string& space,
                    const Address& address, bool tells_success) {
  const AtomicType type = kTypes[instruction.Bits(73, 3)];
  const Register target = instruction.destination();
  const Value expected = Data(to, type, instruction.ThreadRegisterAt(32));
  const std::string format =
      "atom." + space + OperationOf(to, "cas", type) + " ?, " + address.text + ", ?, ?";
  const Value result = tells_success  ? to.Temporary(type.is_pair ? Width::k64 : Width::k32)
                       : type.is_pair ? to.WritePair(target)
                                      : to.Write(target);
  std::vector<Value> values = {result};
  if (address.base) values.push_back(*address.base);
  values.push_back(expected);
  values.push_back(Data(to, type, instruction.ThreadRegisterAt(64)));
  to.Emit(format, std::move(values));
  if (!tells_success) return;
  const Value same =
      to.Compute(Width::kPredicate, type.is_pair ? "setp.eq.u64 ?, ?, ?" : "setp.eq.u32 ?, ?, ?",
                 {result, expected});
  to.Emit(type.is_pair ? "selp.b64 ?, 1, 0, ?" : "selp.b32 ?, 1, 0, ?",
          {type.is_pair ? to.WritePair(target) : to.Write(target), same});
}

// Atomics with a predicate result exist only for generic addresses here.
void RefusePredicate(Emitter& to, const MachineInstruction& instruction) {
  if (!instruction.PredicateAt(81).is_fixed()) to.Unsupported("with a predicate as its result");
}

// For a generic address, the machine may leave an operation, on shared memory for example, to the
// code that follows, and reports this in a predicate. PTX performs all operations, so the predicate
// always reports completion.
void TellDone(Emitter& to, const MachineInstruction& instruction) {
  to.Move(instruction.PredicateAt(81), to.Read(PredicateOperand{}));
}

}  // namespace

void LiftAtomg(Emitter& to, const MachineInstruction& instruction) {
  RefusePredicate(to, instruction);
  Update(to, instruction, "global.", GlobalAddress(to, instruction, kUniform));
}

void LiftAtom(Emitter& to, const MachineInstruction& instruction) {
  Update(to, instruction, "", GlobalAddress(to, instruction, kUniform));
  TellDone(to, instruction);
}

void LiftAtomgCas(Emitter& to, const MachineInstruction& instruction) {
  RefusePredicate(to, instruction);
  CompareAndSwap(to, instruction, "global.", GlobalAddress(to, instruction, kUniform), false);
}

void LiftAtomCas(Emitter& to, const MachineInstruction& instruction) {
  CompareAndSwap(to, instruction, "", GlobalAddress(to, instruction, kUniform), false);
  TellDone(to, instruction);
}

void LiftAtoms(Emitter& to, const MachineInstruction& instruction) {
  Update(to, instruction, "shared.", SharedAddress(to, instruction, kUniform));
}

void LiftAtomsCas(Emitter& to, const MachineInstruction& instruction) {
  CompareAndSwap(to, instruction, "shared.", SharedAddress(to, instruction, kUniform),
                 instruction.Bit(87));
}

void LiftRed(Emitter& to, const MachineInstruction& instruction) {
  const AtomicType type = kTypes[instruction.Bits(73, 3)];
  const std::string operation = OperationOf(to, kOperators[instruction.Bits(87, 3)], type);
  const Address address = GlobalAddress(to, instruction, kUniform);
  to.Emit("red.global." + operation + " " + address.text + ", ?",
          {*address.base, Data(to, type, instruction.ThreadRegisterAt(32))});
}

}  // namespace torpor::sass
