#include "emulator/sass/fuse.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/sass/flow.h"

namespace torpor::sass {
namespace {

// The statements of one instruction.
struct Group {
  std::size_t first = 0;
  std::size_t end = 0;
  bool guarded = false;
  SlotSet reads;
  SlotSet writes;
};

constexpr std::size_t kFarthest = 96;  // instructions between two halves

bool IsZero(const Value& value) { return value.kind == Value::Kind::kText && value.text == "0"; }

bool IsNumber(const Value& value) {
  return value.kind == Value::Kind::kText && !value.text.empty() &&
         value.text.find_first_not_of("-0123456789") == std::string::npos;
}

bool IsRegister(const Value& value) { return value.kind == Value::Kind::kRegister; }

bool IsSame(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Value::Kind::kRegister) return a.reg == b.reg;
  if (a.kind == Value::Kind::kTemporary) return a.temporary == b.temporary;
  return a.text == b.text;
}

// Finds pairs of halves within each block and replaces them. Groups, the statements of one
// instruction, stay whole; the statement list is rebuilt at the end.
class Fusion {
 public:
  explicit Fusion(Emitter& emitter) : emitter_(emitter), statements_(emitter.statements()) {}

  void Run() {
    FindGroups();
    const Flow flow(statements_);
    for (std::size_t b = 0; b < flow.blocks().size(); ++b) {
      const FlowBlock& block = flow.blocks()[b];
      FuseBlock(GroupOf(block.first), GroupOf(block.end - 1) + 1, flow.LiveOut(b));
    }
    Rebuild();
  }

 private:
  // A term of a sum: both words, and how well they match.
  struct Term {
    Value low;
    Value high;
    bool negated = false;
    bool is_sign = false;  // the high word is the sign of the low one
  };

  // Groups consecutive statements of one instruction, with the registers that they read and write.
  void FindGroups() {
    group_of_.resize(statements_.size());
    for (std::size_t i = 0; i < statements_.size(); ++i) {
      if (i == 0 || statements_[i].offset != statements_[i - 1].offset) {
        groups_.push_back({i, i, false, {}, {}});
      }
      Group& group = groups_.back();
      group.end = i + 1;
      group_of_[i] = groups_.size() - 1;
      group.guarded |= statements_[i].guard.has_value();
      ForEachRead(statements_[i], [&](const Register& reg) { group.reads.set(SlotOf(reg)); });
      ForEachWrite(statements_[i], [&](const Register& reg) { group.writes.set(SlotOf(reg)); });
    }
    replaced_.resize(groups_.size());
  }

  std::size_t GroupOf(std::size_t statement) const { return group_of_[statement]; }

  const Half* HalfOf(std::size_t group) const {
    if (groups_[group].guarded || replaced_[group]) return nullptr;
    const auto& half = statements_[groups_[group].end - 1].half;
    return half ? &*half : nullptr;
  }

  // Tries to fuse each high half in [begin, end) with a low half before it.
  void FuseBlock(std::size_t begin, std::size_t end, const SlotSet& live_out) {
    for (std::size_t g = begin; g < end; ++g) {
      const Half* half = HalfOf(g);
      if (half == nullptr) continue;
      switch (half->kind) {
        case Half::Kind::kHighSum:
        case Half::Kind::kHighComparison:
          FuseByCarry(begin, g, end, live_out);
          break;
        case Half::Kind::kMove:
          FuseMoves(begin, g);
          break;
        default:
          break;
      }
    }
  }

  // Returns the last group of [begin, end) that writes the register.
  std::optional<std::size_t> LastWrite(std::size_t begin, std::size_t end, std::size_t slot) const {
    const std::size_t first = std::max(begin, end > kFarthest ? end - kFarthest : 0);
    for (std::size_t g = end; g-- > first;) {
      if (WritesOf(g)[slot]) return g;
    }
    return std::nullopt;
  }

  // Whether a group in [first, end) reads the slot.
  bool IsReadBetween(std::size_t first, std::size_t end, std::size_t slot) const {
    for (std::size_t g = first; g < end; ++g) {
      if (ReadsOf(g)[slot]) return true;
    }
    return false;
  }

  // Whether a group in [first, end) writes any of the slots.
  bool AreWrittenBetween(std::size_t first, std::size_t end, const SlotSet& slots) const {
    for (std::size_t g = first; g < end; ++g) {
      if ((WritesOf(g) & slots).any()) return true;
    }
    return false;
  }

  const SlotSet& ReadsOf(std::size_t group) const { return groups_[group].reads; }
  const SlotSet& WritesOf(std::size_t group) const { return groups_[group].writes; }

  // Whether only `reader` reads the value that `writer` leaves in the slot.
  bool IsOnlyReader(std::size_t writer, std::size_t reader, std::size_t end, std::size_t slot,
                    const SlotSet& live_out) const {
    if (IsReadBetween(writer + 1, reader, slot)) return false;
    if (WritesOf(reader)[slot]) return true;
    for (std::size_t g = reader + 1; g < end; ++g) {
      if (ReadsOf(g)[slot]) return false;
      if (WritesOf(g)[slot] && !groups_[g].guarded) return true;
    }
    return !live_out[slot];
  }

  // Fuses the sum or comparison at `high` with the group that produces its carry, if only `high`
  // reads the carry and no group in between interferes.
  void FuseByCarry(std::size_t begin, std::size_t high, std::size_t end, const SlotSet& live_out) {
    const Half& upper = *HalfOf(high);
    const std::size_t carry = SlotOf(upper.carry);
    const auto low = LastWrite(begin, high, carry);
    if (!low) return;
    const Half* lower = HalfOf(*low);
    const bool is_sum = upper.kind == Half::Kind::kHighSum;
    const auto wanted = is_sum ? Half::Kind::kLowSum : Half::Kind::kLowComparison;
    if (lower == nullptr || lower->kind != wanted || SlotOf(lower->carry) != carry) return;
    if (!IsOnlyReader(*low, high, end, carry, live_out)) return;
    if (!is_sum) return FuseComparison(*low, *lower, high, upper);
    if (lower->result.Next() != upper.result || lower->result.number % 2 != 0) return;
    const auto terms = PairTerms(begin, high, *lower, upper);
    if (!terms) return;
    const std::size_t result = SlotOf(lower->result);
    SlotSet own_reads = ReadsOf(high);
    own_reads.reset(carry);
    // At the second half, if no statement between needs the first.
    SlotSet both;
    both.set(result);
    const bool late = !IsReadBetween(*low + 1, high, result) && !own_reads[result] &&
                      !AreWrittenBetween(*low + 1, high, ReadsOf(*low) | both);
    if (late) return Replace(*low, high, WriteSum(*lower, *terms));
    // Otherwise at the first half.
    SlotSet upper_result;
    upper_result.set(SlotOf(upper.result));
    const bool early = !own_reads[result] && !IsReadBetween(*low + 1, high, SlotOf(upper.result)) &&
                       !AreWrittenBetween(*low + 1, high, own_reads | upper_result);
    if (early) Replace(high, *low, WriteSum(*lower, *terms));
  }

  // Finds a word of the high half for each word of the low half.
  std::optional<std::vector<Term>> PairTerms(std::size_t begin, std::size_t high, const Half& lower,
                                             const Half& upper) const {
    std::vector<Half::Term> lows = lower.terms;
    std::vector<Half::Term> highs = upper.terms;
    // LEA.HI.X.SX32 with shift 1 adds the sign of a word that the low half adds unshifted.
    const bool adds_sign = upper.first_is_extended && upper.shift == 1 && !lower.first_is_whole;
    if (adds_sign) {
      const auto word = std::find_if(lows.begin(), lows.end(), [&](const Half::Term& term) {
        return !term.negated && IsSame(term.value, upper.low_of_first);
      });
      if (word == lows.end()) return std::nullopt;
      std::iter_swap(lows.begin(), word);
    } else if (lower.shift != upper.shift) {
      return std::nullopt;
    }
    const std::size_t count = std::max(lows.size(), highs.size());
    lows.resize(count, {Emitter::Number(0), false});
    highs.resize(count, {Emitter::Number(0), false});
    // Shifted terms pair with shifted terms, and need the same low word.
    const bool has_shift = lower.first_is_whole || upper.first_is_whole;
    if (has_shift && !adds_sign &&
        (!lower.first_is_whole || !upper.first_is_whole ||
         !IsSame(lows[0].value, upper.low_of_first))) {
      return std::nullopt;
    }
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::optional<std::vector<std::size_t>> best;
    int best_score = -1;
    do {
      if (has_shift && order[0] != 0) continue;
      int score = 0;
      for (std::size_t i = 0; i < count && score >= 0; ++i) {
        const Half::Term& low = lows[i];
        const Half::Term& partner = highs[order[i]];
        const bool signs_differ = low.negated != partner.negated;
        const bool may_differ = IsZero(low.value) && IsZero(partner.value);
        score =
            signs_differ && !may_differ ? -1 : score + Score(begin, high, low.value, partner.value);
      }
      if (score > best_score) {
        best_score = score;
        best = order;
      }
    } while (std::next_permutation(order.begin(), order.end()));
    if (!best) return std::nullopt;
    std::vector<Term> terms;
    for (std::size_t i = 0; i < count; ++i) {
      const Value& partner = highs[(*best)[i]].value;
      const bool is_sign =
          (i == 0 && upper.first_is_extended) || IsSignOf(begin, high, lows[i].value, partner);
      terms.push_back({lows[i].value, partner, lows[i].negated, is_sign});
    }
    return terms;
  }

  // Rates how well two words make one 64-bit value.
  int Score(std::size_t begin, std::size_t at, const Value& low, const Value& high) const {
    if (IsNumber(low) && IsNumber(high)) return IsZero(low) == IsZero(high) ? 4 : 3;
    if (IsRegister(low) && IsRegister(high) && high.reg == low.reg.Next()) return 4;
    if (emitter_.AreHalvesOfConstant(low, high)) return 4;
    if (IsSignOf(begin, at, low, high)) return 4;
    if (IsZero(high)) return 2;
    return 0;
  }

  // Whether `high` holds the sign of `low` at group `at`.
  bool IsSignOf(std::size_t begin, std::size_t at, const Value& low, const Value& high) const {
    if (!IsRegister(low) || !IsRegister(high)) return false;
    const auto write = LastWrite(begin, at, SlotOf(high.reg));
    if (!write) return false;
    const Half* half = HalfOf(*write);
    if (half == nullptr || half->kind != Half::Kind::kSign) return false;
    if (!IsSame(half->terms[0].value, low)) return false;
    SlotSet slots;
    slots.set(SlotOf(low.reg));
    return !AreWrittenBetween(*write, at, slots);
  }

  // The value of 64 bits, in statements of `out`.
  Value Whole(std::vector<Statement>& out, const Value& low, const Value& high, bool is_sign) {
    if (is_sign) return Compute(out, "cvt.s64.s32 ?, ?", {low});
    if (IsNumber(low) && IsNumber(high)) {
      const auto bits = static_cast<std::uint64_t>(std::stoll(high.text)) << 32 |
                        (static_cast<std::uint64_t>(std::stoll(low.text)) & 0xffffffff);
      return Emitter::Number(static_cast<std::int64_t>(bits));
    }
    if (IsRegister(low) && IsRegister(high) && high.reg == low.reg.Next() &&
        low.reg.number % 2 == 0) {
      return emitter_.ReadPair(low.reg);
    }
    if (emitter_.AreHalvesOfConstant(low, high)) return emitter_.WholeConstant(low);
    if (IsZero(high)) return Compute(out, "cvt.u64.u32 ?, ?", {low});
    return Compute(out, "mov.b64 ?, {?, ?}", {low, high});
  }

  Value Compute(std::vector<Statement>& out, std::string_view format, std::vector<Value> sources) {
    Value result = emitter_.Temporary(Width::k64);
    sources.insert(sources.begin(), result);
    Add(out, format, std::move(sources));
    return result;
  }

  static void Add(std::vector<Statement>& out, std::string_view format, std::vector<Value> values) {
    Statement statement;
    statement.format = format;
    statement.values = std::move(values);
    out.push_back(std::move(statement));
  }

  // Writes the sum of 64-bit terms, with shifts and negations, to the pair of the low half.
  std::vector<Statement> WriteSum(const Half& lower, const std::vector<Term>& terms) {
    std::vector<Statement> out;
    std::vector<std::pair<Value, bool>> parts;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const Term& term = terms[i];
      if (IsZero(term.low) && IsZero(term.high)) continue;
      Value whole = Whole(out, term.low, term.high, term.is_sign);
      if (i == 0 && lower.shift != 0) {
        whole = Compute(out, "shl.b64 ?, ?, ?", {whole, Emitter::Number(lower.shift)});
      }
      parts.emplace_back(whole, term.negated);
    }
    std::stable_partition(parts.begin(), parts.end(),
                          [](const auto& part) { return !part.second; });
    Value result = emitter_.WritePair(lower.result);
    if (parts.empty()) parts.emplace_back(Emitter::Number(0), false);
    if (parts.size() == 1) {
      Add(out, parts[0].second ? "neg.s64 ?, ?" : "mov.b64 ?, ?", {result, parts[0].first});
      return out;
    }
    Value sum = parts[0].first;
    if (parts[0].second) sum = Compute(out, "neg.s64 ?, ?", {sum});
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::string_view format = parts[i].second ? "sub.s64 ?, ?, ?" : "add.s64 ?, ?, ?";
      if (i + 1 == parts.size()) {
        Add(out, format, {result, sum, parts[i].first});
      } else {
        sum = Compute(out, format, {sum, parts[i].first});
      }
    }
    return out;
  }

  // Replaces two word comparisons by one 64-bit comparison, at the high words.
  void FuseComparison(std::size_t low, const Half& lower, std::size_t high, const Half& upper) {
    if (lower.comparison != upper.comparison) return;
    if (AreWrittenBetween(low + 1, high, ReadsOf(low))) return;
    std::vector<Statement> out;
    std::array<Value, 2> sides;
    for (std::size_t i = 0; i < 2; ++i) {
      sides[i] = Whole(out, lower.terms[i].value, upper.terms[i].value, false);
    }
    Add(out, "setp." + upper.comparison + (upper.is_signed ? ".s64" : ".u64") + " ?, ?, ?",
        {emitter_.Write(upper.result), sides[0], sides[1]});
    Replace(low, high, std::move(out));
  }

  // Replaces two copies of the halves of a pair by one copy of the pair.
  void FuseMoves(std::size_t begin, std::size_t second) {
    const Half& one = *HalfOf(second);
    Register partner = one.result;
    partner.number = static_cast<std::uint8_t>(partner.number ^ 1U);
    if (partner.is_fixed()) return;
    const auto first = LastWrite(begin, second, SlotOf(partner));
    if (!first) return;
    const Half* other = HalfOf(*first);
    if (other == nullptr || other->kind != Half::Kind::kMove) return;
    const bool is_low = one.result.number % 2 == 0;
    const Half& low = is_low ? one : *other;
    const Half& high = is_low ? *other : one;
    const Value& low_word = low.terms[0].value;
    const Value& high_word = high.terms[0].value;
    const bool fits = (IsRegister(low_word) && IsRegister(high_word) &&
                       high_word.reg == low_word.reg.Next() && low_word.reg.number % 2 == 0) ||
                      emitter_.AreHalvesOfConstant(low_word, high_word);
    const std::size_t written = SlotOf(partner);
    SlotSet both;
    both.set(written);
    if (!fits || IsReadBetween(*first + 1, second + 1, written) ||
        AreWrittenBetween(*first + 1, second, ReadsOf(*first) | both)) {
      return;
    }
    std::vector<Statement> out;
    const Value whole = Whole(out, low_word, high_word, false);
    Add(out, "mov.b64 ?, ?", {emitter_.WritePair(low.result), whole});
    Replace(*first, second, std::move(out));
  }

  // Drops the group `removed`, and replaces the group `place` by `statements`.
  void Replace(std::size_t removed, std::size_t place, std::vector<Statement> statements) {
    const std::uint64_t offset = statements_[groups_[place].first].offset;
    groups_[place].reads.reset();
    groups_[place].writes.reset();
    for (Statement& statement : statements) {
      statement.offset = offset;
      ForEachRead(statement, [&](const Register& reg) { groups_[place].reads.set(SlotOf(reg)); });
      ForEachWrite(statement, [&](const Register& reg) { groups_[place].writes.set(SlotOf(reg)); });
    }
    groups_[removed].reads.reset();
    groups_[removed].writes.reset();
    replaced_[removed] = std::vector<Statement>();
    replaced_[place] = std::move(statements);
  }

  // Writes the statements back, with replaced groups dropped or exchanged.
  void Rebuild() {
    std::vector<Statement> result;
    result.reserve(statements_.size());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (replaced_[g]) {
        std::move(replaced_[g]->begin(), replaced_[g]->end(), std::back_inserter(result));
        continue;
      }
      for (std::size_t i = groups_[g].first; i < groups_[g].end; ++i) {
        result.push_back(std::move(statements_[i]));
      }
    }
    statements_ = std::move(result);
  }

  Emitter& emitter_;
  std::vector<Statement>& statements_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;
  std::vector<std::optional<std::vector<Statement>>> replaced_;
};

}  // namespace

void FuseHalves(Emitter& emitter) { Fusion(emitter).Run(); }

}  // namespace torpor::sass
