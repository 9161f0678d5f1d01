#include "emulator/ptx/collective.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "emulator/ptx/bit_set.h"
#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/lane_analysis.h"

namespace torpor::ptx {
namespace {

// At each place where lanes may wait, code deals with all other places: code grows with the square.
constexpr std::size_t kMaxWrittenOut = 12;

Operand Label(std::uint32_t label) {
  Operand operand;
  operand.kind = Operand::Kind::kLabel;
  operand.symbol = label;
  return operand;
}

// Makes an instruction at the source position of `like`, for messages.
Instruction Made(const Instruction& like, Opcode opcode, std::vector<Operand> operands) {
  Instruction made;
  made.opcode = opcode;
  made.types = {like.type()};
  made.line = like.line;
  made.spelling = like.spelling;
  made.operands = std::move(operands);
  return made;
}

// A function with some operations written out.
class Expansion {
 public:
  Expansion(const Function& original, const BitSet& chosen) : result_(original) {
    result_.instructions.clear();
    std::vector<std::uint32_t> moved;  // the new place of each instruction
    for (std::uint32_t i = 0; i < original.instructions.size(); ++i) {
      moved.push_back(next());
      const Instruction& instruction = original.instructions[i];
      if (chosen.Contains(i)) {
        WriteOut(i, instruction);
      } else {
        Append(i, instruction);
      }
    }
    moved.push_back(next());
    for (std::size_t label = 0; label < original.labels.size(); ++label) {
      result_.labels[label] =
          moved[std::min<std::size_t>(original.labels[label], original.instructions.size())];
    }
  }

  const Function& function() const { return result_; }
  // Returns the index of the original instruction.
  std::uint32_t OriginOf(std::uint32_t index) const { return origins_[index]; }

 private:
  std::uint32_t next() const { return static_cast<std::uint32_t>(result_.instructions.size()); }

  // Copies an instruction; `origin` is the index of the original.
  void Append(std::uint32_t origin, Instruction instruction) {
    result_.instructions.push_back(std::move(instruction));
    origins_.push_back(origin);
  }

  // Appends the expansion that collective.h shows. The labels are bound at the end.
  void WriteOut(std::uint32_t origin, const Instruction& operation) {
    const Operand& members = operation.operands.back();
    Instruction barrier = Made(operation, Opcode::kBar, {members});
    barrier.modifiers.set(static_cast<std::size_t>(Modifier::kWarp));
    Instruction converged = operation;
    converged.converged = true;
    const auto slow = static_cast<std::uint32_t>(result_.labels.size());
    const std::uint32_t after = slow + 1;
    result_.labels.resize(result_.labels.size() + 2);

    Append(origin, Made(operation, Opcode::kConverge, {Label(slow), members}));
    Append(origin, operation);
    Append(origin, Made(operation, Opcode::kBra, {Label(after)}));
    result_.labels[slow] = next();
    if (operation.opcode != Opcode::kElect) {
      Append(origin, Made(operation, Opcode::kDeposit, {operation.operands[1]}));
    }
    Append(origin, barrier);
    Append(origin, converged);
    Append(origin, barrier);
    result_.labels[after] = next();
  }

  Function result_;
  std::vector<std::uint32_t> origins_;
};

// Adds to `chosen` the operations that lanes may run while others are elsewhere. Returns false if
// there are no further operations.
bool Choose(const Module& module, const Expansion& expansion, const BlockShape& shape,
            std::int64_t local_stride, BitSet& chosen) {
  const Function& function = expansion.function();
  const ControlFlow flow = BuildControlFlow(function);
  const LaneAnalysis lanes(module, function, flow, shape, local_stride);
  bool grew = false;
  for (std::uint32_t b = 0; b < flow.blocks.size(); ++b) {
    if (lanes.reconvergence().pending(b).empty()) continue;
    for (std::uint32_t i = flow.blocks[b].first; i < flow.blocks[b].end; ++i) {
      const Instruction& instruction = function.instructions[i];
      const std::uint32_t origin = expansion.OriginOf(i);
      const bool applies = IsCollective(instruction) && instruction.guard == kNoIndex;
      if (!applies || chosen.Contains(origin)) continue;
      chosen.Insert(origin);
      grew = true;
    }
  }
  return grew;
}

}  // namespace

bool IsCollective(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kShfl:
    case Opcode::kVote:
    case Opcode::kMatch:
    case Opcode::kRedux:
    case Opcode::kElect:
      return instruction.Has(Modifier::kSync) && instruction.operands.size() >= 2;
    default:
      return false;
  }
}

Function ConvergeCollectives(const Module& module, std::uint32_t index, const BlockShape& shape,
                             std::int64_t local_stride) {
  const Function& original = module.functions[index];
  const auto& instructions = original.instructions;
  if (std::none_of(instructions.begin(), instructions.end(), IsCollective)) return original;
  BitSet chosen(instructions.size());
  // Where lanes wait, others may overtake them at more operations.
  while (true) {
    const Expansion expansion(original, chosen);
    if (!Choose(module, expansion, shape, local_stride, chosen)) return expansion.function();
    if (chosen.Count() > kMaxWrittenOut) return original;
  }
}

}  // namespace torpor::ptx
