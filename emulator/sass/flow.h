#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/sass/statement.h"

namespace torpor::sass {

// Numbers all registers that a statement may name: R, UR, P, UP.
inline constexpr std::size_t kSlots = 256 + 64 + 8 + 8;
using SlotSet = std::bitset<kSlots>;
std::size_t SlotOf(const Register& reg);

// A basic block: consecutive statements.
struct FlowBlock {
  std::size_t first = 0;
  std::size_t end = 0;
  std::vector<std::size_t> successors;  // blocks
  std::vector<std::size_t> predecessors;
  bool is_target = false;  // of a branch
};

// Calls visit(register) for each register that a statement reads: its guard included, and
// destinations that keep their value if the guard is off.
void ForEachRead(const Statement& statement, auto&& visit) {
  const auto read = [&](const Value& value) {
    if (value.kind == Value::Kind::kRegister) visit(value.reg);
    if (value.kind == Value::Kind::kPair) {
      visit(value.reg);
      visit(value.reg.Next());
    }
  };
  if (statement.guard) read(*statement.guard);
  for (const Value& value : statement.values) {
    if (!value.written) read(value);
  }
}

// Calls visit(register) for each register that a statement writes.
void ForEachWrite(const Statement& statement, auto&& visit) {
  for (const Value& value : statement.values) {
    if (!value.written) continue;
    visit(value.reg);
    if (value.kind == Value::Kind::kPair) visit(value.reg.Next());
  }
}

// The control flow graph of a kernel's statements, with live registers. Branch targets are offsets
// of instructions; a branch goes to the first statement at or after the offset. `statements` must
// outlive the graph.
class Flow {
 public:
  explicit Flow(const std::vector<Statement>& statements);

  const std::vector<FlowBlock>& blocks() const { return blocks_; }
  std::size_t BlockAt(std::uint64_t offset) const;  // blocks().size() behind the last
  const SlotSet& live_in(std::size_t block) const { return live_in_[block]; }
  SlotSet LiveOut(std::size_t block) const;

 private:
  void FindBlocks();
  void FindEdges();
  void FindLive();
  std::size_t StatementAt(std::uint64_t offset) const;

  const std::vector<Statement>& statements_;
  std::vector<FlowBlock> blocks_;
  std::vector<std::size_t> block_of_;
  std::vector<SlotSet> live_in_;
};

}  // namespace torpor::sass
