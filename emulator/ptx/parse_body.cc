#include <bit>
#include <string>

#include "emulator/ptx/parser_state.h"

namespace torpor::ptx {
namespace {

constexpr std::uint32_t kMaxRegisters = 1U << 20;
constexpr unsigned kMaxNesting = 64;

}  // namespace

// Parses a function body. Scopes are a stack: scopes_[0] is the module's.
void ParserState::ParseBody() {
  Expect('{');
  scopes_.emplace_back();
  while (!failed() && scopes_.size() > 1) {
    if (token_.kind == Token::Kind::kEnd) return Fail("a function without its '}'");
    ParseStatement();
  }
  Function& function = module_.functions[current_];
  function.carry = static_cast<std::uint32_t>(function.registers.size());
  function.registers.push_back(Type::kPred);
}

// Parses a directive, a label or an instruction, or opens or closes a scope.
void ParserState::ParseStatement() {
  if (Accept('{')) {
    if (scopes_.size() > kMaxNesting) return Fail("nested too deeply");
    scopes_.emplace_back();
    return;
  }
  if (token_.Is('}')) {
    CloseScope();
    Take();
    return;
  }
  if (Accept(';')) return;
  if (token_.kind == Token::Kind::kWord && token_.text.starts_with('.')) {
    return ParseBodyDirective(TakeDirective());
  }
  ParseInstruction();
}

void ParserState::ParseBodyDirective(std::string_view word) {
  if (word == ".reg") {
    ParseRegisters();
  } else if (word == ".shared") {
    ParseVariable(Space::kShared, current_, Linkage::kLocal);
  } else if (word == ".local") {
    ParseVariable(Space::kLocal, current_, Linkage::kLocal);
  } else if (word == ".param") {
    ParseVariable(Space::kParam, current_, Linkage::kLocal);
  } else if (word == ".global" || word == ".const") {
    ParseVariable(word == ".global" ? Space::kGlobal : Space::kConst, current_, Linkage::kLocal);
  } else if (word == ".loc" || word == ".file") {
    const std::uint32_t line = token_.line;
    while (token_.line == line && token_.kind != Token::Kind::kEnd) Take();
  } else if (word == ".pragma") {
    SkipStatement();
  } else {
    Fail("unknown directive '" + std::string(word) + "'");
  }
}

// Parses the names after .reg and a type: `%r<9>` declares %r0 to %r8.
void ParserState::ParseRegisters() {
  Variable declared;
  ParseTypeOf(declared);
  Function& function = module_.functions[current_];
  do {
    const std::string_view name = ExpectWord();
    std::uint64_t count = 1;
    const bool range = Accept('<');
    if (range) {
      count = ParseConstant();
      Expect('>');
    }
    if (failed()) return;
    if (count > kMaxRegisters || function.registers.size() + count > kMaxRegisters) {
      return Fail("too many registers");
    }
    const auto first = static_cast<std::uint32_t>(function.registers.size());
    function.registers.insert(function.registers.end(), count, declared.type);
    Scope& scope = scopes_.back();
    if (range) {
      scope.ranges[name] = first;
      scope.range_sizes[name] = static_cast<std::uint32_t>(count);
    } else {
      scope.registers[name] = first;
    }
  } while (Accept(','));
  Expect(';');
}

// "%r12" is a register by itself or the twelfth of the range "%r".
std::uint32_t ParserState::FindRegister(std::string_view name) const {
  std::size_t stem = name.size();
  while (stem > 0 && name[stem - 1] >= '0' && name[stem - 1] <= '9') --stem;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->registers.find(name); found != scope->registers.end()) {
      return found->second;
    }
    // A range's own name may end in a digit.
    for (std::size_t length = stem; length < name.size(); ++length) {
      const auto range = scope->ranges.find(name.substr(0, length));
      if (range == scope->ranges.end() || name.size() - length > 7) continue;
      std::uint32_t number = 0;
      for (const char digit : name.substr(length)) {
        number = number * 10 + static_cast<std::uint32_t>(digit - '0');
      }
      if (number < scope->range_sizes.at(range->first)) return range->second + number;
    }
  }
  return kNoIndex;
}

// Returns a new entry of Function::labels for a use of `name`.
std::uint32_t ParserState::LabelIndex(std::string_view name) {
  Function& function = module_.functions[current_];
  const auto index = static_cast<std::uint32_t>(function.labels.size());
  function.labels.push_back(kNoIndex);
  pending_labels_.push_back({name, index, scopes_.size()});
  return index;
}

void ParserState::CloseScope() {
  const Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  BindLabels(scope);
  if (scopes_.size() > 1) return;
  if (!pending_labels_.empty()) {
    Fail("undeclared label '" + std::string(pending_labels_.front().name) + "'");
  }
  pending_labels_.clear();
}

// Binds pending uses to the labels of the closing scope.
void ParserState::BindLabels(const Scope& scope) {
  Function& function = module_.functions[current_];
  std::erase_if(pending_labels_, [&](const PendingLabel& pending) {
    if (pending.depth <= scopes_.size()) return false;
    const auto found = scope.labels.find(pending.name);
    if (found == scope.labels.end()) return false;
    function.labels[pending.index] = found->second;
    return true;
  });
  // An outer scope may declare the remaining labels.
  for (PendingLabel& pending : pending_labels_) {
    if (pending.depth > scopes_.size()) pending.depth = scopes_.size();
  }
}

// Parses after `name:`, a label or a table of branch targets.
void ParserState::ParseLabelledStatement(std::string_view name) {
  if (Accept(".branchtargets")) return ParseBranchTargets(name);
  if (token_.Is(".callprototype") || token_.Is(".calltargets")) return SkipStatement();
  const auto here = static_cast<std::uint32_t>(module_.functions[current_].instructions.size());
  scopes_.back().labels[name] = here;
}

void ParserState::ParseBranchTargets(std::string_view name) {
  std::vector<std::uint32_t> targets;
  do {
    targets.push_back(LabelIndex(ExpectWord()));
  } while (Accept(','));
  Expect(';');
  if (failed()) return;
  auto& tables = module_.functions[current_].branch_tables;
  scopes_.back().tables[name] = static_cast<std::uint32_t>(tables.size());
  tables.push_back(std::move(targets));
}

// Parses an instruction: an optional guard, the spelling, and operands up to ';'.
void ParserState::ParseInstruction() {
  Instruction instruction;
  instruction.line = token_.line;
  if (Accept('@')) {
    instruction.guard_negated = Accept('!');
    instruction.guard = FindRegister(ExpectWord());
    if (instruction.guard == kNoIndex) return Fail("an undeclared guard");
    if (module_.functions[current_].registers[instruction.guard] != Type::kPred) {
      return Fail("a guard that is no predicate");
    }
  }
  const Token first = Take();
  if (first.kind != Token::Kind::kWord) {
    return Fail("expected an instruction before '" + std::string(first.text) + "'");
  }
  if (Accept(':')) return ParseLabelledStatement(first.text);
  instruction.spelling = first.text;
  DecodeSpelling(instruction);
  if (instruction.opcode == Opcode::kUnknown) {
    SkipStatement();
  } else {
    ParseOperands(instruction);
  }
  module_.functions[current_].instructions.push_back(std::move(instruction));
}

void ParserState::ParseOperands(Instruction& instruction) {
  const bool branch = instruction.opcode == Opcode::kBra;
  while (!failed() && !token_.Is(';')) {
    if (branch) {
      Operand operand;
      operand.kind = Operand::Kind::kLabel;
      operand.symbol = LabelIndex(ExpectWord());
      instruction.operands.push_back(std::move(operand));
    } else {
      instruction.operands.push_back(ParseOperand());
    }
    if (!Accept(',')) break;
  }
  if (instruction.Has(Modifier::kCachePolicy) && !instruction.operands.empty()) {
    instruction.operands.pop_back();
  }
  // The analyses look at a branch's operands unasked.
  const bool indexed = instruction.opcode == Opcode::kBrx;
  if (instruction.operands.size() < (indexed ? 2U : branch ? 1U : 0U)) {
    Fail(std::string(instruction.spelling) + " without its target");
  }
  Expect(';');
}

// Parses one operand. Nesting is bounded, since the parser recurses.
Operand ParserState::ParseOperand() {
  if (++depth_ > kMaxNesting) {
    Fail("operands nested too deeply");
    return {};
  }
  Operand operand;
  if (Accept('[')) {
    operand = ParseAddress();
  } else if (token_.Is('{')) {
    operand = ParseVector('{', '}');
    if (Accept('|')) operand = PairOperand(std::move(operand));
  } else if (token_.Is('(')) {
    operand = ParseVector('(', ')');
  } else if (Accept('!')) {
    operand = NameOperand(ExpectWord());
    operand.negated = true;
  } else if (Accept('-')) {
    operand = ParseNumberOperand(true);
  } else if (token_.kind == Token::Kind::kNumber) {
    operand = ParseNumberOperand(false);
  } else {
    operand = NameOperand(ExpectWord());
    if (Accept('|')) {
      operand = PairOperand(std::move(operand));
    } else if (operand.kind != Operand::Kind::kRegister && Accept('+')) {
      operand.bits += ParseConstant();
    }
  }
  --depth_;
  return operand;
}

// d|p
Operand ParserState::PairOperand(Operand first) {
  Operand pair;
  pair.kind = Operand::Kind::kVector;
  pair.elements.push_back(std::move(first));
  pair.elements.push_back(NameOperand(ExpectWord()));
  return pair;
}

// Parses [base], [base + offset] or [offset] after the bracket; of textures also coordinates.
Operand ParserState::ParseAddress() {
  Operand operand;
  if (token_.kind == Token::Kind::kNumber || token_.Is('-')) {
    operand.bits = ParseConstant();
  } else {
    operand = NameOperand(ExpectWord());
    if (operand.kind == Operand::Kind::kRegister || operand.kind == Operand::Kind::kSymbol) {
      operand.name = {};
    } else if (operand.kind != Operand::Kind::kUnresolved) {
      Fail("an address that is neither register nor variable");
    }
    if (Accept('+')) operand.bits += ParseConstant();
    if (Accept('-')) operand.bits -= ParseConstant();
  }
  if (Accept(',')) operand.elements = ParseVector('{', '}').elements;
  Expect(']');
  operand.kind = Operand::Kind::kAddress;
  return operand;
}

Operand ParserState::ParseVector(char open, char close) {
  Operand operand;
  operand.kind = Operand::Kind::kVector;
  Expect(open);
  while (!failed() && !token_.Is(close)) {
    operand.elements.push_back(ParseOperand());
    if (!Accept(',')) break;
  }
  Expect(close);
  return operand;
}

Operand ParserState::ParseNumberOperand(bool negative) {
  Operand operand;
  const Token token = Take();
  const auto number =
      token.kind == Token::Kind::kNumber ? ParseNumber(token.text) : std::optional<Literal>();
  if (!number) {
    Fail("expected a number before '" + std::string(token.text) + "'");
    return operand;
  }
  operand.kind = number->is_float ? Operand::Kind::kFloat : Operand::Kind::kInteger;
  operand.bits = number->bits;
  if (!negative) return operand;
  operand.bits =
      number->is_float ? operand.bits ^ (std::uint64_t{1} << 63) : std::uint64_t{0} - operand.bits;
  return operand;
}

// Resolves a name: registers and variables of inner scopes first. Unknown names stay unresolved
// until the end of the module.
Operand ParserState::NameOperand(std::string_view name) {
  Operand operand;
  operand.name = name;
  if (name == "_") return operand;
  if (const std::uint32_t reg = FindRegister(name); reg != kNoIndex) {
    operand.kind = Operand::Kind::kRegister;
    operand.reg = reg;
    return operand;
  }
  SpecialRegisterName special{};
  if (ParseSpecialRegister(name, special)) {
    operand.kind = Operand::Kind::kSpecial;
    operand.special = special.special;
    operand.bits = special.index;
    return operand;
  }
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->variables.find(name); found != scope->variables.end()) {
      operand.kind = Operand::Kind::kSymbol;
      operand.symbol = found->second;
      return operand;
    }
    if (const auto found = scope->tables.find(name); found != scope->tables.end()) {
      operand.kind = Operand::Kind::kLabel;
      operand.symbol = found->second;
      return operand;
    }
  }
  operand.kind = Operand::Kind::kUnresolved;
  return operand;
}

}  // namespace torpor::ptx
