#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/sass/statement.h"

namespace torpor::sass {

// All registers that a statement may name, by number: R, UR, P, UP.
inline constexpr std::size_t kSlots = 256 + 64 + 8 + 8;
using SlotSet = std::bitset<kSlots>;
std::size_t SlotOf(const Register& reg);

// A stretch of statements that are run one after another.
struct FlowBlock {
  std::size_t first = 0;
  std::size_t end = 0;
  std::vector<std::size_t> successors;  // blocks
  std::vector<std::size_t> predecessors;
  bool is_target = false;  // of a branch
};

// The registers that a statement reads: its guard, too, and what it keeps where that is off.
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

void ForEachWrite(const Statement& statement, auto&& visit) {
  for (const Value& value : statement.values) {
    if (!value.written) continue;
    visit(value.reg);
    if (value.kind == Value::Kind::kPair) visit(value.reg.Next());
  }
}

// The statements of a kernel as a graph. Targets of branches are offsets of instructions; the
// statement at or behind one is where it goes.
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
