#include "emulator/ptx/parser.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "emulator/ptx/parser_state.h"
#include "emulator/ptx/thread_end.h"

namespace torpor::ptx {

ParserState::ParserState(Module& module) : module_(module), lexer_(*module.texts.front()) {
  scopes_.emplace_back();
  token_ = lexer_.Next();
  if (token_.kind == Token::Kind::kBad) Fail("a character that PTX does not know");
}

Token ParserState::Take() {
  const Token taken = token_;
  if (!failed()) token_ = lexer_.Next();
  if (token_.kind == Token::Kind::kBad) Fail("a character that PTX does not know");
  return taken;
}

std::string_view ParserState::TakeDirective() {
  const std::string_view word = token_.text;
  const std::size_t end = word.find('.', 1);
  if (end == std::string_view::npos) return Take().text;
  token_.text = word.substr(end);
  return word.substr(0, end);
}

bool ParserState::Accept(char punctuation) {
  if (!token_.Is(punctuation)) return false;
  Take();
  return true;
}

bool ParserState::Accept(std::string_view word) {
  if (!token_.Is(word)) return false;
  Take();
  return true;
}

void ParserState::Expect(char punctuation) {
  if (!Accept(punctuation)) {
    Fail(std::string("expected '") + punctuation + "' before '" + std::string(token_.text) + "'");
  }
}

std::string_view ParserState::ExpectWord() {
  if (token_.kind != Token::Kind::kWord) {
    Fail("expected a name before '" + std::string(token_.text) + "'");
    return {};
  }
  return Take().text;
}

// Records the first error and turns the current token into the end of the text.
void ParserState::Fail(const std::string& message) {
  if (error_.empty()) error_ = "line " + std::to_string(token_.line) + ": " + message;
  token_ = Token{Token::Kind::kEnd, {}, token_.line};
}

// To behind the next ';' of this nesting level.
void ParserState::SkipStatement() {
  while (token_.kind != Token::Kind::kEnd) {
    if (token_.Is('{')) {
      SkipBraces();
      continue;
    }
    if (token_.Is('}')) return;
    if (Take().Is(';')) return;
  }
}

// Skips a balanced { } block, debug sections for example.
void ParserState::SkipBraces() {
  unsigned depth = 0;
  while (token_.kind != Token::Kind::kEnd) {
    const Token token = Take();
    if (token.Is('{')) ++depth;
    if (token.Is('}') && --depth == 0) return;
  }
  Fail("a '{' without its '}'");
}

void ParserState::ParseModule() {
  while (token_.kind != Token::Kind::kEnd) ParseDirective();
  if (!failed()) LinkNames();
}

void ParserState::ParseDirective() {
  if (Accept(".version")) {
    Take();
  } else if (Accept(".target")) {
    ParseTarget();
  } else if (Accept(".address_size")) {
    if (Take().text != "64") Fail("only .address_size 64 is supported");
  } else if (token_.Is(".file") || token_.Is(".loc")) {
    const std::uint32_t line = token_.line;
    while (token_.line == line && token_.kind != Token::Kind::kEnd) Take();
  } else if (Accept(".section")) {
    Take();
    SkipBraces();
  } else if (token_.Is(".pragma") || token_.Is(".alias")) {
    SkipStatement();
  } else if (Accept(';')) {
    return;
  } else {
    ParseLinkage();
  }
}

// Reads the architecture of .target, and skips its other words.
void ParserState::ParseTarget() {
  do {
    const std::string_view word = ExpectWord();
    if (word.starts_with("sm_")) {
      std::from_chars(word.data() + 3, word.data() + word.size(), module_.target);
    }
  } while (Accept(','));
}

// Parses linkage directives and the declaration after them.
void ParserState::ParseLinkage() {
  Linkage linkage = Linkage::kLocal;
  for (;;) {
    if (Accept(".extern")) {
      linkage = Linkage::kExternal;
    } else if (Accept(".visible")) {
      linkage = Linkage::kVisible;
    } else if (Accept(".weak")) {
      linkage = Linkage::kWeak;
    } else if (Accept(".common")) {
      linkage = Linkage::kCommon;
    } else {
      break;
    }
  }
  if (Accept(".entry")) {
    ParseFunction(true, linkage);
  } else if (Accept(".func")) {
    ParseFunction(false, linkage);
  } else if (Accept(".global")) {
    ParseVariable(Space::kGlobal, kNoIndex, linkage);
  } else if (Accept(".const")) {
    ParseVariable(Space::kConst, kNoIndex, linkage);
  } else if (Accept(".shared")) {
    ParseVariable(Space::kShared, kNoIndex, linkage);
  } else if (Accept(".local")) {
    ParseVariable(Space::kLocal, kNoIndex, linkage);
  } else {
    Fail("unknown directive '" + std::string(token_.text) + "'");
  }
}

// Parses .entry or .func, with or without a body.
void ParserState::ParseFunction(bool is_kernel, Linkage linkage) {
  Function parsed;
  parsed.is_kernel = is_kernel;
  parsed.linkage = linkage;
  Accept(".noreturn");
  const auto scratch = static_cast<std::uint32_t>(module_.functions.size());
  if (token_.Is('(')) ParseParameterList(scratch, parsed.results);
  parsed.name = ExpectWord();
  // A prototype and its body are one function; the body's parameters replace the prototype's.
  std::uint32_t index = module_.FindFunction(parsed.name);
  if (index == kNoIndex) {
    index = scratch;
    module_.functions.emplace_back();
  } else if (module_.functions[index].has_body) {
    return Fail("function '" + std::string(parsed.name) + "' has two bodies");
  }
  for (const std::uint32_t result : parsed.results) module_.variables[result].function = index;
  if (token_.Is('(')) ParseParameterList(index, parsed.parameters);
  for (const std::uint32_t variable : parsed.parameters) {
    const Variable& parameter = module_.variables[variable];
    parsed.parameter_bytes =
        std::max(parsed.parameter_bytes,
                 parameter.parameter_offset + static_cast<std::uint32_t>(parameter.bytes));
  }
  ParseFunctionAttributes(parsed);
  parsed.has_body = token_.Is('{');
  module_.functions[index] = std::move(parsed);
  current_ = index;
  if (Accept(';') || failed()) return;
  ParseBody();
}

// Parses a parameter list and assigns offsets in the packed parameters.
void ParserState::ParseParameterList(std::uint32_t function, std::vector<std::uint32_t>& out) {
  Expect('(');
  std::uint32_t offset = 0;
  while (!failed() && !token_.Is(')')) {
    if (TakeDirective() != ".param") return Fail("only .param parameters are supported");
    const std::uint32_t index = ParseVariable(Space::kParam, function, Linkage::kLocal);
    if (failed()) return;
    Variable& variable = module_.variables[index];
    constexpr std::uint64_t kMaxParameterBytes = 32764;
    offset = (offset + variable.align - 1) / variable.align * variable.align;
    if (variable.bytes > kMaxParameterBytes || offset + variable.bytes > kMaxParameterBytes) {
      return Fail("too many bytes of parameters");
    }
    variable.parameter_offset = offset;
    offset += static_cast<std::uint32_t>(variable.bytes);
    out.push_back(index);
    if (!Accept(',')) break;
  }
  Expect(')');
}

// Parses launch bounds and similar attributes between the parameters and the body.
void ParserState::ParseFunctionAttributes(Function& function) {
  while (token_.kind == Token::Kind::kWord) {
    const std::string_view word = Take().text;
    const bool sets_threads = word == ".maxntid" || word == ".reqntid";
    const bool sets_clusters = word == ".reqnctapercluster";
    if (sets_clusters) function.cluster = {1, 1, 1};
    if (word == ".explicitcluster") function.explicit_cluster = true;
    std::uint64_t threads = 1;
    std::size_t axis = 0;
    while (token_.kind == Token::Kind::kNumber || token_.Is(',')) {
      const Token token = Take();
      const auto number = ParseNumber(token.text);
      if (!number) continue;
      if (number->bits <= 1024) threads *= number->bits;
      // Sizes beyond any device's are refused at the launch.
      constexpr std::uint64_t kMaxCluster = 0xffff;
      if (sets_clusters && axis < function.cluster.size()) {
        function.cluster[axis++] = static_cast<std::uint32_t>(std::min(number->bits, kMaxCluster));
      }
    }
    if (sets_threads) {
      function.max_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 1024));
    }
    if (token_.kind == Token::Kind::kString) Take();
  }
}

// Names of functions and module variables may be used before they are declared.
void ParserState::LinkNames() {
  for (Function& function : module_.functions) {
    for (Instruction& instruction : function.instructions) {
      for (Operand& operand : instruction.operands) LinkOperand(operand);
    }
  }
  for (Variable& variable : module_.variables) {
    for (Relocation& relocation : variable.relocations) {
      Operand operand;
      operand.kind = Operand::Kind::kUnresolved;
      operand.name = relocation.name;
      LinkOperand(operand);
      relocation.symbol = operand.symbol;
      relocation.is_function = operand.kind == Operand::Kind::kFunction;
    }
  }
}

// Resolves a name that was unknown when its operand was parsed.
void ParserState::LinkOperand(Operand& operand) {
  for (Operand& element : operand.elements) LinkOperand(element);
  const bool open = operand.kind == Operand::Kind::kUnresolved ||
                    (operand.kind == Operand::Kind::kAddress && !operand.name.empty());
  if (!open) return;
  const auto variable = scopes_.front().variables.find(operand.name);
  if (variable != scopes_.front().variables.end()) {
    operand.symbol = variable->second;
    if (operand.kind == Operand::Kind::kUnresolved) operand.kind = Operand::Kind::kSymbol;
    return;
  }
  const std::uint32_t function = module_.FindFunction(operand.name);
  if (function != kNoIndex && operand.kind == Operand::Kind::kUnresolved) {
    operand.symbol = function;
    operand.kind = Operand::Kind::kFunction;
    return;
  }
  operand.kind = Operand::Kind::kUnresolved;
}

Result<Module, ParseError> Parse(std::string_view text) {
  Module module;
  // Images often end in zero bytes.
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  module.texts = {std::make_shared<const std::string>(text)};
  ParserState state(module);
  state.ParseModule();
  if (state.failed()) return Failure<ParseError>{ParseError::kSyntax, state.error()};
  MarkCallsThatEndThreads(module);
  return module;
}

}  // namespace torpor::ptx
