#include "emulator/sass/flow.h"

#include <algorithm>

namespace torpor::sass {

std::size_t SlotOf(const Register& reg) {
  switch (reg.file) {
    case RegisterFile::kRegister:
      return reg.number;
    case RegisterFile::kUniform:
      return 256U + reg.number;
    case RegisterFile::kPredicate:
      return 320U + reg.number;
    default:
      return 328U + reg.number;
  }
}

Flow::Flow(const std::vector<Statement>& statements) : statements_(statements) {
  FindBlocks();
  FindEdges();
  FindLive();
}

// Returns the first statement at or after `offset`.
std::size_t Flow::StatementAt(std::uint64_t offset) const {
  const auto found = std::lower_bound(
      statements_.begin(), statements_.end(), offset,
      [](const Statement& statement, std::uint64_t at) { return statement.offset < at; });
  return static_cast<std::size_t>(found - statements_.begin());
}

std::size_t Flow::BlockAt(std::uint64_t offset) const {
  const std::size_t statement = StatementAt(offset);
  return statement == statements_.size() ? blocks_.size() : block_of_[statement];
}

// Blocks start at targets of branches and after statements that end or branch.
void Flow::FindBlocks() {
  std::vector<bool> starts(statements_.size() + 1);
  std::vector<bool> targets(statements_.size() + 1);
  if (!starts.empty()) starts[0] = true;
  for (std::size_t i = 0; i < statements_.size(); ++i) {
    const Statement& statement = statements_[i];
    if (statement.ends || !statement.targets.empty()) starts[i + 1] = true;
    for (const std::uint64_t target : statement.targets) {
      starts[StatementAt(target)] = true;
      targets[StatementAt(target)] = true;
    }
  }
  block_of_.resize(statements_.size());
  for (std::size_t i = 0; i < statements_.size(); ++i) {
    if (starts[i]) {
      blocks_.push_back({i, i, {}, {}, targets[i]});
    }
    block_of_[i] = blocks_.size() - 1;
    blocks_.back().end = i + 1;
  }
}

// A guarded branch also falls through.
void Flow::FindEdges() {
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    FlowBlock& block = blocks_[b];
    const Statement& last = statements_[block.end - 1];
    for (const std::uint64_t target : last.targets) {
      if (BlockAt(target) < blocks_.size()) block.successors.push_back(BlockAt(target));
    }
    const bool falls = !last.ends || last.guard.has_value();
    if (falls && b + 1 < blocks_.size()) block.successors.push_back(b + 1);
    for (const std::size_t successor : block.successors) {
      blocks_[successor].predecessors.push_back(b);
    }
  }
}

SlotSet Flow::LiveOut(std::size_t block) const {
  SlotSet live;
  for (const std::size_t successor : blocks_[block].successors) live |= live_in_[successor];
  return live;
}

// Backward data flow, iterated until nothing changes.
void Flow::FindLive() {
  std::vector<SlotSet> read(blocks_.size());     // before it is written
  std::vector<SlotSet> written(blocks_.size());  // whatever the guard
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    for (std::size_t i = blocks_[b].first; i < blocks_[b].end; ++i) {
      ForEachRead(statements_[i], [&](const Register& reg) {
        if (!written[b][SlotOf(reg)]) read[b].set(SlotOf(reg));
      });
      ForEachWrite(statements_[i], [&](const Register& reg) {
        const std::size_t slot = SlotOf(reg);
        if (!statements_[i].guard) {
          written[b].set(slot);
        } else if (!written[b][slot]) {
          read[b].set(slot);  // what was there may stay
        }
      });
    }
  }
  live_in_ = read;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = blocks_.size(); b-- > 0;) {
      const SlotSet live = read[b] | (LiveOut(b) & ~written[b]);
      changed |= live != live_in_[b];
      live_in_[b] = live;
    }
  }
}

}  // namespace torpor::sass
