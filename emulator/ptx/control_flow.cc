#include "emulator/ptx/control_flow.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "emulator/ptx/bit_set.h"
#include "emulator/ptx/dataflow.h"

namespace torpor::ptx {
namespace {

// Whether control may go elsewhere after the instruction.
bool EndsBlock(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::kBra:
    case Opcode::kBrx:
    case Opcode::kConverge:
    case Opcode::kRet:
    case Opcode::kExit:
      return true;
    case Opcode::kCall:
      return instruction.ends_threads;
    case Opcode::kTrap:
      return instruction.guard == kNoIndex;
    default:
      return false;
  }
}

// Cuts the instructions into blocks; successors are still numbered in program order.
class Cutter {
 public:
  explicit Cutter(const Function& function) : function_(function) {}

  // Cuts the body at leaders: targets of labels, barriers, and instructions after branches. The
  // last block may be empty: the end of the body, which exits.
  std::vector<BasicBlock> Cut() {
    FindLeaders();
    std::vector<BasicBlock> blocks(leaders_.size());
    for (std::uint32_t i = 0; i < blocks.size(); ++i) {
      const std::uint32_t end = i + 1 < leaders_.size() ? leaders_[i + 1] : size();
      FillBlock(blocks[i], i, leaders_[i], end);
    }
    return blocks;
  }

 private:
  std::uint32_t size() const { return static_cast<std::uint32_t>(function_.instructions.size()); }

  void FindLeaders() {
    std::set<std::uint32_t> leaders = {0};
    for (const std::uint32_t target : function_.labels) leaders.insert(std::min(target, size()));
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (EndsBlock(function_.instructions[i])) leaders.insert(i + 1);
      if (function_.instructions[i].is_barrier()) leaders.insert(i);
      if (function_.instructions[i].is_warp_barrier()) leaders.insert({i, i + 1});
    }
    // A label behind the last instruction, or falling off the end, is a return.
    leaders.insert(size());
    leaders_.assign(leaders.begin(), leaders.end());
    for (std::uint32_t i = 0; i < leaders_.size(); ++i) block_at_[leaders_[i]] = i;
  }

  std::uint32_t BlockOfLabel(std::uint32_t label) const {
    return block_at_.at(std::min(function_.labels[label], size()));
  }

  void FillBlock(BasicBlock& block, std::uint32_t index, std::uint32_t first,
                 std::uint32_t end) const {
    block.first = first;
    block.end = end;
    if (first == size()) return;  // kExit
    block.starts_with_barrier = function_.instructions[first].is_barrier();
    block.is_warp_barrier = function_.instructions[first].is_warp_barrier();
    const Instruction& last = function_.instructions[end - 1];
    if (!EndsBlock(last)) {
      block.terminator = Terminator::kJump;
      block.successors = {index + 1};
      return;
    }
    // A trap stays in the block: it reports the error, and the exit after it is never reached.
    if (last.opcode == Opcode::kTrap) return;
    block.branch = --block.end;
    const bool conditional = last.guard != kNoIndex || last.opcode == Opcode::kConverge;
    if (last.opcode == Opcode::kRet || last.opcode == Opcode::kExit) {
      block.terminator = conditional ? Terminator::kConditionalExit : Terminator::kExit;
      if (conditional) block.successors = {index + 1};
    } else if (last.opcode == Opcode::kCall) {
      block.terminator = Terminator::kConditionalExit;
      block.successors = {index + 1};
    } else if (last.opcode == Opcode::kBrx) {
      FillIndexed(block, last);
    } else {
      block.terminator = conditional ? Terminator::kConditional : Terminator::kJump;
      block.successors = {BlockOfLabel(last.operands[0].symbol)};
      if (conditional) block.successors.push_back(index + 1);
    }
  }

  // An operand list that does not name a table leaves the block without successors.
  void FillIndexed(BasicBlock& block, const Instruction& branch) const {
    block.terminator = Terminator::kIndexed;
    if (branch.operands.size() != 2 || branch.operands[1].kind != Operand::Kind::kLabel) return;
    for (const std::uint32_t label : function_.branch_tables[branch.operands[1].symbol]) {
      block.successors.push_back(BlockOfLabel(label));
    }
  }

  const Function& function_;
  std::vector<std::uint32_t> leaders_;
  std::map<std::uint32_t, std::uint32_t> block_at_;
};

// Reverse postorder from `entry` over any graph.
template <typename Successors>
std::vector<std::uint32_t> ReversePostorder(std::uint32_t entry, std::size_t size,
                                            Successors successors) {
  std::vector<std::uint32_t> order;
  std::vector<std::pair<std::uint32_t, std::size_t>> stack = {{entry, 0}};
  BitSet seen(size);
  seen.Insert(entry);
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    const std::vector<std::uint32_t>& out = successors(node);
    if (next == out.size()) {
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    // Last successor first, so that the first one comes first in the reversed order.
    const std::uint32_t target = out[out.size() - 1 - next++];
    if (seen.Contains(target)) continue;
    seen.Insert(target);
    stack.emplace_back(target, 0);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// Finds natural loops and lists the blocks with every loop contiguous.
class Orderer {
 public:
  explicit Orderer(std::vector<BasicBlock>& blocks)
      : blocks_(blocks), innermost_(blocks.size(), 0) {}

  // Returns the reachable blocks in the order that ControlFlow describes, and sets the loops of
  // blocks. Loops come from back edges to dominators; each is ordered as a unit, from the outside
  // in.
  std::vector<std::uint32_t> Order() {
    order_ = ReversePostorder(
        0, blocks_.size(), [&](std::uint32_t b) -> const auto& { return blocks_[b].successors; });
    FindDominators();
    FindLoops();
    std::vector<std::uint32_t> result;
    Expand(0, result);
    for (const std::uint32_t block : order_) {
      const std::uint32_t loop = innermost_[block];
      blocks_[block].loop = loop == 0 ? kNoIndex : loops_[loop].header;
      blocks_[block].loop_end = static_cast<std::uint32_t>(loops_[loop].blocks.size());
    }
    return result;
  }

 private:
  // loops_[0] is the whole function.
  struct Loop {
    std::uint32_t header = 0;
    std::uint32_t parent = 0;
    std::vector<std::uint32_t> blocks;  // of this loop and its inner ones
  };

  // Finds immediate dominators by iteration over the reverse postorder (Cooper, Harvey and Kennedy,
  // "A Simple, Fast Dominance Algorithm").
  void FindDominators() {
    position_.assign(blocks_.size(), kNoIndex);
    predecessors_.assign(blocks_.size(), {});
    for (std::uint32_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
    for (const std::uint32_t block : order_) {
      for (const std::uint32_t target : blocks_[block].successors) {
        predecessors_[target].push_back(block);
      }
    }
    dominator_.assign(blocks_.size(), kNoIndex);
    dominator_[0] = 0;
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::uint32_t block : order_) {
        if (block != 0) changed |= UpdateDominator(block);
      }
    }
  }

  bool UpdateDominator(std::uint32_t block) {
    std::uint32_t common = kNoIndex;
    for (const std::uint32_t predecessor : predecessors_[block]) {
      if (dominator_[predecessor] == kNoIndex) continue;
      common = common == kNoIndex ? predecessor : Intersect(common, predecessor);
    }
    if (dominator_[block] == common) return false;
    dominator_[block] = common;
    return true;
  }

  // Returns the nearest common dominator.
  std::uint32_t Intersect(std::uint32_t a, std::uint32_t b) const {
    while (a != b) {
      while (position_[a] > position_[b]) a = dominator_[a];
      while (position_[b] > position_[a]) b = dominator_[b];
    }
    return a;
  }

  bool Dominates(std::uint32_t a, std::uint32_t b) const {
    while (position_[b] > position_[a]) b = dominator_[b];
    return a == b;
  }

  // Headers in reverse postorder: outer loops come before the inner ones that overwrite them.
  void FindLoops() {
    loops_.push_back({0, 0, order_});
    for (const std::uint32_t header : order_) {
      std::vector<std::uint32_t> work;
      for (const std::uint32_t predecessor : predecessors_[header]) {
        if (Dominates(header, predecessor)) work.push_back(predecessor);
      }
      if (!work.empty()) AddLoop(header, std::move(work));
    }
  }

  // Adds the loop of `header` with the blocks that reach the back edges starting in `work`.
  void AddLoop(std::uint32_t header, std::vector<std::uint32_t> work) {
    Loop loop{header, innermost_[header], {header}};
    BitSet inside(blocks_.size());
    inside.Insert(header);
    while (!work.empty()) {
      const std::uint32_t block = work.back();
      work.pop_back();
      if (inside.Contains(block)) continue;
      inside.Insert(block);
      loop.blocks.push_back(block);
      work.insert(work.end(), predecessors_[block].begin(), predecessors_[block].end());
    }
    const auto index = static_cast<std::uint32_t>(loops_.size());
    for (const std::uint32_t block : loop.blocks) innermost_[block] = index;
    loops_.push_back(std::move(loop));
  }

  // Returns the block that stands for `block` inside region `loop`: the block, or the header of the
  // child loop around the block. kNoIndex if the block lies outside.
  std::uint32_t Representative(std::uint32_t loop, std::uint32_t block) const {
    std::uint32_t inner = innermost_[block];
    if (inner == loop) return block;
    while (inner != 0 && loops_[inner].parent != loop) inner = loops_[inner].parent;
    return inner == 0 ? kNoIndex : loops_[inner].header;
  }

  // Appends the blocks of a loop in order; nested loops are expanded in place.
  void Expand(std::uint32_t loop, std::vector<std::uint32_t>& out) const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> edges;
    const std::uint32_t header = loops_[loop].header;
    for (const std::uint32_t block : loops_[loop].blocks) {
      const std::uint32_t from = Representative(loop, block);
      std::vector<std::uint32_t>& targets = edges[from];
      for (const std::uint32_t target : blocks_[block].successors) {
        const std::uint32_t to = Representative(loop, target);
        const bool inside = to != kNoIndex && to != from && (to != header || loop == 0);
        if (inside && std::find(targets.begin(), targets.end(), to) == targets.end()) {
          targets.push_back(to);
        }
      }
    }
    // The function's entry may itself be a loop's header.
    const std::uint32_t entry = Representative(loop, header);
    for (const std::uint32_t node : ReversePostorder(
             entry, blocks_.size(), [&](std::uint32_t b) -> const auto& { return edges[b]; })) {
      const std::uint32_t inner = innermost_[node];
      if (inner == loop) {
        out.push_back(node);
      } else {
        std::uint32_t child = inner;
        while (loops_[child].parent != loop) child = loops_[child].parent;
        Expand(child, out);
      }
    }
  }

  std::vector<BasicBlock>& blocks_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> position_;
  std::vector<std::vector<std::uint32_t>> predecessors_;
  std::vector<std::uint32_t> dominator_;
  std::vector<std::uint32_t> innermost_;
  std::vector<Loop> loops_;
};

// A loop without a synchronising access cannot wait, whatever its condition was computed from.
bool LoopSpins(const Function& function, const ControlFlow& flow, std::uint32_t header,
               const std::vector<bool>& tainted) {
  const std::uint32_t loop_end = flow.blocks[header].loop_end;
  bool access = false;
  bool exit = false;
  for (std::uint32_t b = header; b < loop_end; ++b) {
    const BasicBlock& block = flow.blocks[b];
    for (std::uint32_t i = block.first; i < block.end; ++i) {
      const Instruction& instruction = function.instructions[i];
      access |= instruction.is_synchronising() || instruction.opcode == Opcode::kCall;
    }
    if (block.branch == kNoIndex) continue;
    const std::uint32_t guard = function.instructions[block.branch].guard;
    if (guard == kNoIndex || !tainted[guard]) continue;
    bool leaves = block.terminator == Terminator::kConditionalExit;
    for (const std::uint32_t target : block.successors) {
      leaves |= target < header || target >= loop_end;
    }
    exit |= leaves;
  }
  return access && exit;
}

// Marks loops that wait for other threads: their exits depend on a synchronising access.
void FindSpinLoops(const Function& function, ControlFlow& flow) {
  std::vector<bool> tainted(function.registers.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (const Instruction& instruction : function.instructions) {
      bool taints = instruction.is_synchronising();
      ForEachUse(function, instruction,
                 [&](std::uint32_t reg) { taints = taints || tainted[reg]; });
      if (!taints) continue;
      ForEachDefinition(function, instruction, [&](std::uint32_t reg) {
        changed |= !tainted[reg];
        tainted[reg] = true;
      });
    }
  }
  for (std::uint32_t header = 0; header < flow.blocks.size(); ++header) {
    if (flow.blocks[header].loop != header) continue;
    flow.blocks[header].spins = LoopSpins(function, flow, header, tainted);
  }
}

}  // namespace

ControlFlow BuildControlFlow(const Function& function) {
  std::vector<BasicBlock> blocks = Cutter(function).Cut();
  ControlFlow flow;
  if (blocks.size() > kMaxBlocks) return flow;
  const std::vector<std::uint32_t> order = Orderer(blocks).Order();
  std::vector<std::uint32_t> renumbered(blocks.size(), kNoIndex);
  for (std::uint32_t i = 0; i < order.size(); ++i) renumbered[order[i]] = i;
  for (const std::uint32_t old : order) {
    BasicBlock block = std::move(blocks[old]);
    for (std::uint32_t& target : block.successors) target = renumbered[target];
    if (block.loop != kNoIndex) block.loop = renumbered[block.loop];
    block.loop_end += block.loop == kNoIndex ? 0 : block.loop;
    flow.blocks.push_back(std::move(block));
  }
  FindSpinLoops(function, flow);
  return flow;
}

}  // namespace torpor::ptx
