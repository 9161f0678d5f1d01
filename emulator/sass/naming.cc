#include "emulator/sass/naming.h"

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "emulator/sass/flow.h"

namespace torpor::sass {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Disjoint sets of numbers, each with a representative.
class Groups {
 public:
  std::uint32_t Add() {
    parents_.push_back(static_cast<std::uint32_t>(parents_.size()));
    return parents_.back();
  }
  std::uint32_t Find(std::uint32_t number) {
    while (parents_[number] != number) {
      parents_[number] = parents_[parents_[number]];
      number = parents_[number];
    }
    return number;
  }
  void Unite(std::uint32_t a, std::uint32_t b) { parents_[Find(a)] = Find(b); }
  std::size_t size() const { return parents_.size(); }

 private:
  std::vector<std::uint32_t> parents_;
};

// The values of an operand: one for a register, two for a pair.
struct ValueNames {
  std::uint32_t low = kNone;
  std::uint32_t high = kNone;
};

class Naming {
 public:
  Naming(const std::vector<Statement>& statements, const std::vector<Width>& temporaries)
      : statements_(statements), temporaries_(temporaries), flow_(statements) {}

  std::string Print(const std::vector<Statement>& prologue) {
    FindValues();
    FindPairs();
    std::string body;
    for (const Statement& statement : prologue) body += PrintStatement(statement, nullptr);
    std::size_t next_block = 0;
    for (std::size_t i = 0; i < statements_.size(); ++i) {
      if (next_block < flow_.blocks().size() && flow_.blocks()[next_block].first == i) {
        if (flow_.blocks()[next_block].is_target) body += Label(next_block) + ":\n";
        ++next_block;
      }
      body += PrintStatement(statements_[i], &names_[i]);
    }
    body += Label(flow_.blocks().size()) + ":\nexit;\n";
    return Declarations() + body;
  }

 private:
  using Names = std::vector<ValueNames>;  // of the guard, then of the values

  // Walks over each block with the values in its registers; where blocks meet, values merge.
  void FindValues() {
    const auto& blocks = flow_.blocks();
    std::vector<std::map<std::size_t, std::uint32_t>> at_entry(blocks.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (std::size_t slot = 0; slot < kSlots; ++slot) {
        if (flow_.live_in(b)[slot]) at_entry[b][slot] = groups_.Add();
      }
    }
    names_.resize(statements_.size());
    std::vector<std::uint32_t> held(kSlots);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      held.assign(kSlots, kNone);
      for (const auto& [slot, value] : at_entry[b]) held[slot] = value;
      for (std::size_t i = blocks[b].first; i < blocks[b].end; ++i) WalkStatement(i, held);
      for (const std::size_t successor : blocks[b].successors) {
        for (const auto& [slot, value] : at_entry[successor]) {
          if (held[slot] != kNone) groups_.Unite(value, held[slot]);
        }
      }
    }
  }

  void WalkStatement(std::size_t i, std::vector<std::uint32_t>& held) {
    const Statement& statement = statements_[i];
    const auto reading = [&](const Register& reg) {
      std::uint32_t& value = held[SlotOf(reg)];
      if (value == kNone) value = groups_.Add();
      return value;
    };
    const auto name = [&](const Value& value, auto&& of) {
      ValueNames names;
      if (value.kind == Value::Kind::kRegister) names.low = of(value.reg);
      if (value.kind == Value::Kind::kPair) {
        names.low = of(value.reg);
        names.high = of(value.reg.Next());
      }
      return names;
    };
    Names& names = names_[i];
    names.resize(statement.values.size() + 1);
    if (statement.guard) names[0] = name(*statement.guard, reading);
    for (std::size_t v = 0; v < statement.values.size(); ++v) {
      if (!statement.values[v].written) names[v + 1] = name(statement.values[v], reading);
    }
    const auto writing = [&](const Register& reg) {
      const std::uint32_t value = groups_.Add();
      std::uint32_t& before = held[SlotOf(reg)];
      if (statement.guard && before != kNone) groups_.Unite(value, before);
      return before = value;
    };
    for (std::size_t v = 0; v < statement.values.size(); ++v) {
      if (statement.values[v].written) names[v + 1] = name(statement.values[v], writing);
    }
  }

  // Finds values that are written only as halves of the same pair.
  void FindPairs() {
    partner_.assign(groups_.size(), kNone);
    std::vector<bool> is_low(groups_.size());
    std::vector<bool> alone(groups_.size());
    const auto join = [&](std::uint32_t value, std::uint32_t other, bool low) {
      if (partner_[value] == kNone) {
        partner_[value] = other;
        is_low[value] = low;
      } else if (partner_[value] != other || is_low[value] != low) {
        alone[value] = true;
      }
    };
    ForEachWritten([&](const Value& value, const ValueNames& names) {
      const std::uint32_t low = groups_.Find(names.low);
      if (value.kind != Value::Kind::kPair) {
        alone[low] = true;
        return;
      }
      const std::uint32_t high = groups_.Find(names.high);
      join(low, high, true);
      join(high, low, false);
    });
    std::vector<bool> split = alone;
    for (std::uint32_t value = 0; value < groups_.size(); ++value) {
      const std::uint32_t other = partner_[value];
      if (other == kNone) continue;
      if (alone[value] || alone[other] || partner_[other] != value) split[value] = true;
    }
    is_low_.assign(groups_.size(), false);
    for (std::uint32_t value = 0; value < groups_.size(); ++value) {
      if (split[value]) partner_[value] = kNone;
      is_low_[value] = is_low[value];
    }
  }

  void ForEachWritten(auto&& visit) {
    for (std::size_t i = 0; i < statements_.size(); ++i) {
      for (std::size_t v = 0; v < statements_[i].values.size(); ++v) {
        const Value& value = statements_[i].values[v];
        if (value.written) visit(value, names_[i][v + 1]);
      }
    }
  }

  // Returns "%r5" for a value, numbered in order of first appearance.
  std::string Numbered(char kind, std::uint32_t value) { return Numbered({'%', kind}, value); }
  std::string Numbered(const std::string& prefix, std::uint32_t value) {
    auto& numbers = numbers_[prefix];
    const auto number = numbers.try_emplace(value, numbers.size()).first->second;
    return prefix + std::to_string(number);
  }

  static char KindOf(Width width) {
    constexpr std::array<char, 4> kKinds = {'p', 'h', 'r', 'q'};
    return kKinds[static_cast<std::size_t>(width)];
  }

  std::string TemporaryName(std::uint32_t temporary) {
    return Numbered({'%', 't', KindOf(temporaries_[temporary])}, temporary);
  }

  std::string Scratch(char kind) { return Numbered({'%', 's', kind}, scratch_++); }

  struct Operand {
    std::string text;
    std::string before;  // statements
    std::string after;
  };

  // `guard` is the statement's guard as text.
  Operand PrintValue(const Value& value, const ValueNames& names, const std::string& guard) {
    switch (value.kind) {
      case Value::Kind::kText:
        return {value.text, "", ""};
      case Value::Kind::kTemporary:
        return {TemporaryName(value.temporary), "", ""};
      case Value::Kind::kRegister:
        return value.written ? PrintWritten(names.low, value.width)
                             : PrintRead(names.low, value.width);
      case Value::Kind::kPair:
        return PrintPair(value, names, guard);
    }
    return {};
  }

  Operand PrintRead(std::uint32_t name, Width width) {
    const std::uint32_t value = groups_.Find(name);
    if (width != Width::k32 || partner_[value] == kNone) {
      return {Numbered(KindOf(width), value), "", ""};
    }
    const std::string half = Scratch('r');
    const std::string halves = is_low_[value] ? "{" + half + ", _}" : "{_, " + half + "}";
    const std::uint32_t low = is_low_[value] ? value : partner_[value];
    return {half, "mov.b64 " + halves + ", " + Numbered('q', low) + ";\n", ""};
  }

  Operand PrintWritten(std::uint32_t name, Width width) {
    return {Numbered(KindOf(width), groups_.Find(name)), "", ""};
  }

  Operand PrintPair(const Value& value, const ValueNames& names, const std::string& guard) {
    const std::uint32_t low = groups_.Find(names.low);
    const std::uint32_t high = groups_.Find(names.high);
    if (partner_[low] == high && is_low_[low]) return {Numbered('q', low), "", ""};
    const std::string whole = Scratch('q');
    if (value.written) {
      return {whole, "",
              guard + "mov.b64 {" + Numbered('r', low) + ", " + Numbered('r', high) + "}, " +
                  whole + ";\n"};
    }
    const Operand first = PrintRead(names.low, Width::k32);
    const Operand second = PrintRead(names.high, Width::k32);
    return {whole,
            first.before + second.before + "mov.b64 " + whole + ", {" + first.text + ", " +
                second.text + "};\n",
            ""};
  }

  bool IsWhole(const ValueNames& names) {
    const std::uint32_t low = groups_.Find(names.low);
    return is_low_[low] && partner_[low] == groups_.Find(names.high);
  }

  // Prints a copy of a pair, kept as one register by neither side, as two moves: the lane analysis
  // does not look into pairs. Returns an empty text for other statements.
  std::string PrintTwoMoves(const Statement& statement, const Names& names,
                            const std::string& guard) {
    if (statement.format != "mov.b64 ?, ?") return {};
    const Value& target = statement.values[0];
    const Value& source = statement.values[1];
    if (target.kind != Value::Kind::kPair || IsWhole(names[1])) return {};
    std::array<std::string, 2> words;
    if (source.kind == Value::Kind::kPair && !IsWhole(names[2])) {
      const Operand low = PrintRead(names[2].low, Width::k32);
      const Operand high = PrintRead(names[2].high, Width::k32);
      if (!low.before.empty() || !high.before.empty()) return {};
      words = {low.text, high.text};
    } else if (source.kind == Value::Kind::kText) {
      const std::int64_t number = std::stoll(source.text);
      words = {std::to_string(static_cast<std::int32_t>(number)),
               std::to_string(static_cast<std::int32_t>(number >> 32))};
    } else {
      return {};
    }
    std::string text = guard;
    text += "mov.b32 " + PrintWritten(names[1].low, Width::k32).text + ", " + words[0] + ";\n";
    text += guard;
    text += "mov.b32 " + PrintWritten(names[1].high, Width::k32).text + ", " + words[1] + ";\n";
    return text;
  }

  std::string PrintStatement(const Statement& statement, const Names* names) {
    static constexpr ValueNames kNoNames;
    const auto name = [&](std::size_t i) { return names == nullptr ? kNoNames : (*names)[i]; };
    std::string guard;
    if (statement.guard) {
      guard = statement.guard_negated ? "@!" : "@";
      guard += PrintValue(*statement.guard, name(0), "").text;
      guard += ' ';
    }
    if (names != nullptr) {
      std::string moves = PrintTwoMoves(statement, *names, guard);
      if (!moves.empty()) return moves;
    }
    std::string before;
    std::string text;
    std::string after;
    std::size_t next = 0;
    for (const char letter : statement.format) {
      if (letter != '?') {
        text += letter;
        continue;
      }
      const Operand operand = PrintValue(statement.values[next], name(next + 1), guard);
      before += operand.before;
      text += operand.text;
      after += operand.after;
      ++next;
    }
    for (const std::uint64_t target : statement.targets) {
      text += ' ';
      text += Label(flow_.BlockAt(target));
    }
    return before + guard + text + ";\n" + after;
  }

  static std::string Label(std::size_t block) { return "$L" + std::to_string(block); }

  std::string Declarations() {
    std::string text;
    const auto declare = [&](std::string_view type, const std::string& prefix, std::size_t count) {
      if (count == 0) return;
      text += ".reg " + std::string(type) + " " + prefix + "<" + std::to_string(count) + ">;\n";
    };
    constexpr std::array<std::pair<char, std::string_view>, 4> kTypes = {
        {{'p', ".pred"}, {'h', ".b16"}, {'r', ".b32"}, {'q', ".b64"}}};
    for (const auto& [kind, type] : kTypes) {
      for (const std::string& prefix :
           {std::string{'%', kind}, std::string{'%', 's', kind}, std::string{'%', 't', kind}}) {
        declare(type, prefix, numbers_[prefix].size());
      }
    }
    return text;
  }

  const std::vector<Statement>& statements_;
  const std::vector<Width>& temporaries_;
  Flow flow_;
  Groups groups_;
  std::vector<Names> names_;
  std::vector<std::uint32_t> partner_;  // of a value that is half of a pair
  std::vector<bool> is_low_;
  std::map<std::string, std::map<std::uint32_t, std::size_t>> numbers_;
  std::uint32_t scratch_ = 0;
};

}  // namespace

std::string NameAndPrint(const std::vector<Statement>& prologue,
                         const std::vector<Statement>& statements,
                         const std::vector<Width>& temporaries) {
  return Naming(statements, temporaries).Print(prologue);
}

}  // namespace torpor::sass
