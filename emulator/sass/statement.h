#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nvidia/machine_code/instruction.h"

// The translation of instructions: PTX statements whose operands still are machine registers. A
// machine register holds several values in turn; naming.h gives each value a PTX register of its
// own, and 64-bit values in two registers one 64-bit register.
namespace torpor::sass {

enum class Width : std::uint8_t { kPredicate, k16, k32, k64 };

// An operand.
struct Value {
  enum class Kind : std::uint8_t {
    kText,       // as it is: a number, a symbol, a special register
    kRegister,   // 32 bits, or a predicate; never RZ or PT
    kPair,       // 64 bits in `reg` and the register behind it
    kTemporary,  // written once, by the statement that names it first
  };
  Kind kind = Kind::kText;
  bool written = false;
  Register reg{};
  std::uint32_t temporary = 0;
  Width width = Width::k32;
  std::string text;
};

// An instruction that computes one word of a 64-bit number; input of fuse.h.
struct Half {
  enum class Kind : std::uint8_t {
    kLowSum,          // writes `carry`
    kHighSum,         // reads `carry`
    kLowComparison,   // writes `carry`, a predicate
    kHighComparison,  // reads `carry`
    kMove,
    kSign,  // of its term, 0 or ~0
  };
  struct Term {
    Value value;
    bool negated = false;
  };
  Kind kind = Kind::kMove;
  std::vector<Term> terms;
  Register result{};
  Register carry{};
  // Of a sum with a shifted first term: the low half holds the term's low word. The high half holds
  // the high word (or the low word's sign, if extended), and `low_of_first`.
  unsigned shift = 0;
  bool first_is_whole = false;
  bool first_is_extended = false;
  Value low_of_first;
  std::string comparison;
  bool is_signed = false;
};

// One PTX statement.
struct Statement {
  // PTX with a ? for each value, without the semicolon: "add.s32 ?, ?, ?".
  std::string format;
  std::vector<Value> values;
  std::optional<Value> guard;
  bool guard_negated = false;
  std::uint64_t offset = 0;            // of the instruction
  std::vector<std::uint64_t> targets;  // of a branch: offsets of instructions
  bool ends = false;                   // nothing follows, unless it has a guard
  std::optional<Half> half;            // of the last statement of an instruction
};

}  // namespace torpor::sass
