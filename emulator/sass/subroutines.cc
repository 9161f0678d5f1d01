#include "emulator/sass/subroutines.h"

#include <algorithm>
#include <set>

#include "emulator/sass/opcodes.h"

namespace torpor::sass {
namespace {

class Walk {
 public:
  Walk(const Text& text, const CubinKernel& kernel) : text_(text), kernel_(kernel) {}

  // The RETs that code from `entry` on reaches within the same call.
  std::set<std::uint64_t> ReturnsFrom(std::uint64_t entry) {
    std::set<std::uint64_t> returns;
    std::set<std::uint64_t> seen;
    std::vector<std::uint64_t> left = {entry};
    while (!left.empty()) {
      std::uint64_t at = left.back();
      left.pop_back();
      while (at + kInstructionBytes <= text_.code.size() && seen.insert(at).second) {
        const MachineInstruction instruction = Decode(text_.code.data() + at, at);
        AddTargets(instruction, left);
        if (instruction.opcode() == kRet) returns.insert(at);
        if (Ends(instruction)) break;
        at += kInstructionBytes;
      }
    }
    return returns;
  }

 private:
  void AddTargets(const MachineInstruction& instruction, std::vector<std::uint64_t>& left) const {
    if (instruction.opcode() == kBra) left.push_back(instruction.branch_target());
    if (instruction.opcode() != kBrx) return;
    for (const IndirectBranch& branch : kernel_.branches) {
      if (branch.offset != instruction.offset) continue;
      left.insert(left.end(), branch.targets.begin(), branch.targets.end());
    }
  }

  static bool Ends(const MachineInstruction& instruction) {
    const unsigned opcode = instruction.opcode();
    const bool leaves = opcode == kBra || opcode == kBrx || opcode == kExit || opcode == kRet;
    const bool has_predicate = opcode == kBra || opcode == kExit;
    const bool is_conditional =
        !instruction.guard().always() ||
        (has_predicate && !instruction.PredicateSourceAt(87, 90).always()) ||
        (opcode == kBra && instruction.Bit(33));
    return leaves && !is_conditional;
  }

  const Text& text_;
  const CubinKernel& kernel_;
};

}  // namespace

bool CallsByRegister(const MachineInstruction& instruction) {
  constexpr unsigned kByRegister = 1;  // the form
  return instruction.opcode() == kCallRelative && instruction.form() == kByRegister;
}

std::vector<std::uint64_t> FunctionsBehind(const Text& text, const CubinKernel& kernel) {
  std::vector<std::uint64_t> offsets;
  for (const CubinFunction& function : text.functions) {
    if (function.offset != kernel.offset) offsets.push_back(function.offset);
  }
  return offsets;
}

Subroutines FindSubroutines(const Text& text, const CubinKernel& kernel) {
  const std::vector<std::uint64_t> functions = FunctionsBehind(text, kernel);
  std::map<std::uint64_t, std::vector<std::uint64_t>> callers;  // a subroutine -> behind its calls
  for (std::uint64_t at = 0; at + kInstructionBytes <= text.code.size(); at += kInstructionBytes) {
    const MachineInstruction instruction = Decode(text.code.data() + at, at);
    if (instruction.opcode() != kCallRelative) continue;
    if (!CallsByRegister(instruction)) {
      callers[instruction.branch_target()].push_back(at + kInstructionBytes);
      continue;
    }
    for (const std::uint64_t function : functions)
      callers[function].push_back(at + kInstructionBytes);
  }
  Subroutines subroutines;
  Walk walk(text, kernel);
  for (const auto& [entry, places] : callers) {
    for (const std::uint64_t ret : walk.ReturnsFrom(entry)) {
      auto& returns = subroutines.returns[ret];
      returns.insert(returns.end(), places.begin(), places.end());
    }
  }
  for (auto& [ret, places] : subroutines.returns) {
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
  }
  return subroutines;
}

}  // namespace torpor::sass
