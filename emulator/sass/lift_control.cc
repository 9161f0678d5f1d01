// Branches, calls, and the end of a thread.
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

// A branch's condition on the warp, bits 32 and 33.
enum class Asks : unsigned { kNothing = 0, kUniform = 1, kDiverged = 2, kConverged = 3 };

// Branches to the target that equals `number` plus `base`; falls through if there is none.
void BranchToMatching(Emitter& to, const Value& number, std::uint64_t base,
                      std::span<const std::uint64_t> targets) {
  for (const std::uint64_t target : targets) {
    const auto wanted = static_cast<std::int32_t>(target - base);
    const Value chosen =
        to.Compute(Width::kPredicate, "setp.eq.u32 ?, ?, ?", {number, Emitter::Number(wanted)});
    to.BranchIf(chosen, target);
  }
}

// Branches to the target that equals `number` plus `base`, assuming that one does: the last target
// is not compared.
void Dispatch(Emitter& to, const Value& number, std::uint64_t base,
              const std::vector<std::uint64_t>& targets) {
  if (targets.empty()) return to.Unsupported("whose targets are not known");
  BranchToMatching(to, number, base, std::span(targets).first(targets.size() - 1));
  to.Branch(targets.back());
}

// Calls the function of this text whose offset, relative to the instruction's base, is in a
// register. An unknown offset ends the kernel with an error.
void CallFunctions(Emitter& to, const MachineInstruction& instruction) {
  const std::vector<std::uint64_t> targets =
      FunctionsBehind(to.cubin().texts[to.kernel().text], to.kernel());
  if (targets.empty()) return to.Unsupported("of a function that a register names");
  BranchToMatching(to, to.Read(instruction.ThreadRegisterAt(24)), instruction.branch_target(),
                   targets);
  to.End("trap");
}

// A system function, with the machine's calling convention: operands in R4 and the following
// registers, 64-bit operands at even registers, the result in R4.
struct SystemFunction {
  std::string_view name;
  std::string_view operands;  // one letter each: q 64 bits, r 32 bits
  char result = '-';
};
constexpr SystemFunction kSystemFunctions[] = {
    {"vprintf", "qq", 'r'}, {"__assertfail", "qqrqq"}, {"malloc", "q", 'q'}, {"free", "q"}};

const SystemFunction* FindSystemFunction(std::string_view name) {
  for (const SystemFunction& function : kSystemFunctions) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

constexpr std::uint8_t kFirstOperand = 4;

// Calls a system function where `chosen` holds, with the operands and the result in registers.
void CallSystem(Emitter& to, const SystemFunction& function, const Value& chosen) {
  std::string prefix = "$";
  prefix += function.name;
  std::string arguments;
  unsigned reg = kFirstOperand;
  for (std::size_t i = 0; i < function.operands.size(); ++i) {
    const bool is_wide = function.operands[i] == 'q';
    if (is_wide) reg += reg % 2;
    const Register source{RegisterFile::kRegister, static_cast<std::uint8_t>(reg)};
    std::string name = prefix;
    name += std::to_string(i);
    const std::string type = is_wide ? ".b64" : ".b32";
    std::string declaration = ".param " + type;
    declaration.append(" ").append(name).append(";\n");
    to.Declare(declaration);
    std::string store = "st.param" + type;
    store.append(" [").append(name).append("], ?");
    to.EmitIf(chosen, store, {is_wide ? to.ReadPair(source) : to.Read(source)});
    if (i != 0) arguments += ", ";
    arguments += name;
    reg += is_wide ? 2 : 1;
  }
  const Register target{RegisterFile::kRegister, kFirstOperand};
  const std::string result = prefix + "_";
  std::string call = "call ";
  if (function.result != '-') {
    to.Declare(".param .b" + std::string(function.result == 'q' ? "64 " : "32 ") + result + ";\n");
    call += "(" + result + "), ";
  }
  to.EmitIf(chosen, call + std::string(function.name) + ", (" + arguments + ")", {});
  if (function.result == '-') return;
  const bool is_wide = function.result == 'q';
  to.EmitIf(chosen, std::string(is_wide ? "ld.param.b64 ?, [" : "ld.param.b32 ?, [") + result + "]",
            {is_wide ? to.WritePair(target) : to.Write(target)});
}

}  // namespace

// Branches under the guard and the predicate. Code for a warp that may have diverged may ask for
// this: the warp has diverged unless all its lanes are here.
void LiftBra(Emitter& to, const MachineInstruction& instruction) {
  const PredicateOperand condition = instruction.PredicateSourceAt(87, 90);
  const std::uint64_t target = instruction.branch_target();
  if (condition.never()) return;
  const auto asks = static_cast<Asks>(instruction.Bits(32, 2));
  if (asks == Asks::kDiverged || asks == Asks::kConverged) {
    if (!condition.always()) return to.Unsupported("under a predicate besides its guard");
    const Value lanes = to.Compute(Width::k32, "activemask.b32 ?", {});
    const Value answer = to.Compute(
        Width::kPredicate,
        asks == Asks::kDiverged ? "setp.ne.s32 ?, ?, -1" : "setp.eq.s32 ?, ?, -1", {lanes});
    return to.BranchIf(answer, target);
  }
  if (condition.always()) return to.Branch(target);
  to.BranchIf(to.Read(condition), target);
}

// The register holds an offset relative to the instruction's own target.
void LiftBrx(Emitter& to, const MachineInstruction& instruction) {
  for (const IndirectBranch& branch : to.kernel().branches) {
    if (branch.offset != instruction.offset) continue;
    return Dispatch(to, to.Read(instruction.ThreadRegisterAt(24)), instruction.branch_target(),
                    branch.targets);
  }
  to.Unsupported("whose targets are not known");
}

void LiftExit(Emitter& to, const MachineInstruction& instruction) {
  const PredicateOperand condition = instruction.PredicateSourceAt(87, 90);
  if (condition.never()) return;
  if (condition.always()) return to.End("exit");
  to.EndIf(to.Read(condition), "exit");
}

// A function pointer is the offset of a word in bank 2 with the function's offset in this text: the
// compiler gives every kernel copies of the functions whose addresses are taken.
void LiftCallRelative(Emitter& to, const MachineInstruction& instruction) {
  if (CallsByRegister(instruction)) return CallFunctions(to, instruction);
  const std::uint64_t target = instruction.branch_target();
  if (target >= to.cubin().texts[to.kernel().text].code.size()) {
    return to.Unsupported("of another text");
  }
  to.Branch(target);
}

void LiftRet(Emitter& to, const MachineInstruction& instruction) {
  const auto found = to.subroutines().returns.find(instruction.offset);
  if (found == to.subroutines().returns.end()) return to.End("exit");
  Dispatch(to, to.Read(instruction.ThreadRegisterAt(24)), instruction.branch_target(),
           found->second);
}

// Calls by address: only system functions can be called.
void LiftCallAbsolute(Emitter& to, const MachineInstruction& instruction) {
  const Value address = to.ReadPair(instruction.ThreadRegisterAt(24));
  std::vector<std::pair<const SystemFunction*, Value>> functions;
  std::optional<Value> is_known;
  for (std::uint32_t i = 0; i < to.cubin().externals.size(); ++i) {
    const SystemFunction* function = FindSystemFunction(to.cubin().externals[i]);
    if (function == nullptr) continue;
    const auto wanted = static_cast<std::int64_t>(ExternalAddress(i));
    const Value chosen =
        to.Compute(Width::kPredicate, "setp.eq.u64 ?, ?, ?", {address, Emitter::Number(wanted)});
    functions.emplace_back(function, chosen);
    is_known =
        is_known ? to.Compute(Width::kPredicate, "or.pred ?, ?, ?", {*is_known, chosen}) : chosen;
  }
  if (!is_known) return to.Unsupported("of a function by its address");
  to.EmitIf(to.Compute(Width::kPredicate, "not.pred ?, ?", {*is_known}), "trap", {});
  for (const auto& [function, chosen] : functions) CallSystem(to, *function, chosen);
}

// The address of the instruction itself.
void LiftLepc(Emitter& to, const MachineInstruction& instruction) {
  to.Emit("mov.b64 ?, ?", {to.WritePair(instruction.destination()),
                           Emitter::Number(static_cast<std::int64_t>(instruction.offset))});
}

void LiftTrap(Emitter& to, const MachineInstruction& /*instruction*/) { to.Emit("trap", {}); }

}  // namespace torpor::sass
