#include "emulator/ptx/fragment_slots.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "emulator/ptx/dataflow.h"
#include "emulator/ptx/liveness.h"

namespace torpor::ptx {
namespace {

// Instructions whose operands may be fragments.
bool IsMatrixOperation(const Instruction& instruction) {
  return instruction.opcode == Opcode::kWmma || instruction.opcode == Opcode::kMma;
}

// Registers [first, end), and the span of instructions over which any of them is alive.
struct Group {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  std::uint32_t begin_of_life = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t end_of_life = 0;
  bool shares = true;

  // Extends the span of instructions to include `position`.
  void LiveAt(std::uint32_t position) {
    begin_of_life = std::min(begin_of_life, position);
    end_of_life = std::max(end_of_life, position);
  }
};

// Builds the result for one function: groups registers, finds their lives, and assigns slots.
class Placer {
 public:
  Placer(const Function& function, const ControlFlow& flow, const LaneAnalysis& lanes)
      : function_(function), flow_(flow), lanes_(lanes) {}

  FragmentSlots Place() {
    FindGroups();
    FragmentSlots result;
    result.places.resize(function_.registers.size());
    if (groups_.empty()) return result;
    FindLives();
    AssignSlots(result);
    return result;
  }

 private:
  // Whether the operand's registers are consecutive, of one width from 32 to 64 bits, and not
  // linear across lanes.
  bool IsSequence(const Operand& fragment) const {
    if (fragment.kind != Operand::Kind::kVector || fragment.elements.empty()) return false;
    const std::uint32_t first = fragment.elements[0].reg;
    for (std::size_t i = 0; i < fragment.elements.size(); ++i) {
      const Operand& element = fragment.elements[i];
      if (element.kind != Operand::Kind::kRegister || element.reg != first + i) return false;
      const unsigned bits = BitWidth(function_.registers[element.reg]);
      const bool alike = bits == BitWidth(function_.registers[first]);
      if (!alike || bits < 32 || bits > 64 || lanes_.shape(element.reg).linear()) return false;
    }
    return true;
  }

  // Operands with common registers form one group.
  void FindGroups() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> sequences;
    for (const Instruction& instruction : function_.instructions) {
      if (!IsMatrixOperation(instruction)) continue;
      for (const Operand& operand : instruction.operands) {
        if (!IsSequence(operand)) continue;
        sequences.emplace_back(operand.elements.front().reg, operand.elements.back().reg + 1);
      }
    }
    std::sort(sequences.begin(), sequences.end());
    for (const auto& [first, end] : sequences) {
      if (groups_.empty() || first >= groups_.back().end) {
        groups_.emplace_back();
        groups_.back().first = first;
      }
      groups_.back().end = std::max(groups_.back().end, end);
    }
    group_of_.assign(function_.registers.size(), kNoIndex);
    for (std::uint32_t i = 0; i < groups_.size(); ++i) {
      for (std::uint32_t reg = groups_[i].first; reg < groups_[i].end; ++reg) group_of_[reg] = i;
    }
  }

  void LiveAt(std::uint32_t reg, std::uint32_t position) {
    if (group_of_[reg] != kNoIndex) groups_[group_of_[reg]].LiveAt(position);
  }

  // Positions count instructions in block order, in which waiting lanes are never before running
  // lanes. Groups that are alive where lanes wait while others write share no slot.
  void FindLives() {
    const std::vector<BitSet> live = LiveAtEntry(function_, flow_);
    std::uint32_t position = 0;
    for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
      const BasicBlock& block = flow_.blocks[b];
      live[b].ForEach([&](std::size_t reg) { LiveAt(static_cast<std::uint32_t>(reg), position); });
      const std::uint32_t end = block.end + (block.branch == kNoIndex ? 0 : 1);
      for (std::uint32_t i = block.first; i < end; ++i) {
        ++position;
        const auto touch = [&](std::uint32_t reg) { LiveAt(reg, position); };
        ForEachUse(function_, function_.instructions[i], touch);
        ForEachDefinition(function_, function_.instructions[i], touch);
      }
      ++position;
      for (const std::uint32_t target : block.successors) {
        live[target].ForEach(
            [&](std::size_t reg) { LiveAt(static_cast<std::uint32_t>(reg), position); });
      }
      for (Group& group : groups_) {
        for (std::uint32_t reg = group.first; reg < group.end && group.shares; ++reg) {
          group.shares = !lanes_.needs_blend(b, reg);
        }
      }
    }
  }

  // Assigns slots greedily in order of the begin of life, as in linear-scan register allocation: a
  // group that may share takes a slot of equal shape whose owners have died, or a new slot.
  void AssignSlots(FragmentSlots& result) {
    std::vector<std::uint32_t> order(groups_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return groups_[a].begin_of_life < groups_[b].begin_of_life;
    });
    using Kind = std::pair<unsigned, std::uint32_t>;  // bits, registers
    // When each slot's last owner dies, the earliest first.
    std::map<Kind, std::multimap<std::uint32_t, std::uint32_t>> used;
    for (const std::uint32_t i : order) {
      const Group& group = groups_[i];
      const Kind kind = {BitWidth(function_.registers[group.first]), group.end - group.first};
      auto& owners = used[kind];
      std::uint32_t slot = static_cast<std::uint32_t>(result.slots.size());
      const bool reuses =
          group.shares && !owners.empty() && owners.begin()->first < group.begin_of_life;
      if (reuses) {
        slot = owners.begin()->second;
        owners.erase(owners.begin());
      } else {
        result.slots.push_back({kind.first, kind.second});
      }
      if (group.shares) owners.emplace(group.end_of_life, slot);
      for (std::uint32_t reg = group.first; reg < group.end; ++reg) {
        result.places[reg] = {slot, reg - group.first};
      }
    }
  }

  const Function& function_;
  const ControlFlow& flow_;
  const LaneAnalysis& lanes_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;  // registers
};

}  // namespace

bool FragmentSlots::IsInPlace(const Operand& fragment) const {
  if (fragment.kind != Operand::Kind::kVector || fragment.elements.empty()) return false;
  for (std::size_t i = 0; i < fragment.elements.size(); ++i) {
    const Operand& element = fragment.elements[i];
    if (element.kind != Operand::Kind::kRegister) return false;
    const Place& first = places[fragment.elements[0].reg];
    const Place& place = places[element.reg];
    if (place.slot == kNoIndex || place.slot != first.slot) return false;
    if (element.reg != fragment.elements[0].reg + i) return false;
  }
  return true;
}

FragmentSlots PlaceFragments(const Function& function, const ControlFlow& flow,
                             const LaneAnalysis& lanes) {
  return Placer(function, flow, lanes).Place();
}

}  // namespace torpor::ptx
