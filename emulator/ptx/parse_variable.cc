#include <bit>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string>

#include "emulator/ptx/parser_state.h"

namespace torpor::ptx {
namespace {

constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 40;
constexpr std::uint64_t kMaxInitialiserBytes = std::uint64_t{1} << 31;

// Parses exactly the digits of a T: the hexadecimal form of a float or double.
template <typename T>
std::optional<std::uint64_t> HexBits(std::string_view digits) {
  std::uint64_t bits = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  if (digits.size() != 2 * sizeof(T)) return std::nullopt;
  return bits;
}

// Parses decimal, octal, hexadecimal and binary integers, with an optional U.
std::optional<std::uint64_t> ParseInteger(std::string_view text) {
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
    base = 2;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
  }
  if (text.back() == 'U') text.remove_suffix(1);
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

// Parses a literal: 0f and 0d numbers by their bits, decimal numbers, and integers.
std::optional<ParserState::Literal> ParserState::ParseNumber(std::string_view text) const {
  if (text.size() == 10 && (text.starts_with("0f") || text.starts_with("0F"))) {
    const auto bits = HexBits<float>(text.substr(2));
    if (!bits) return std::nullopt;
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(*bits));
    return Literal{true, std::bit_cast<std::uint64_t>(static_cast<double>(value))};
  }
  if (text.size() == 18 && (text.starts_with("0d") || text.starts_with("0D"))) {
    const auto bits = HexBits<double>(text.substr(2));
    if (!bits) return std::nullopt;
    return Literal{true, *bits};
  }
  if (text.find('.') != std::string_view::npos) {
    const std::string copy(text);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    if (end != copy.c_str() + copy.size()) return std::nullopt;
    return Literal{true, std::bit_cast<std::uint64_t>(value)};
  }
  const auto integer = ParseInteger(text);
  if (!integer) return std::nullopt;
  return Literal{false, *integer};
}

std::uint64_t ParserState::ParseConstant() {
  const bool negative = Accept('-');
  const Token token = Take();
  const auto number =
      token.kind == Token::Kind::kNumber ? ParseNumber(token.text) : std::optional<Literal>();
  if (!number || number->is_float) {
    Fail("expected an integer before '" + std::string(token.text) + "'");
    return 0;
  }
  return negative ? std::uint64_t{0} - number->bits : number->bits;
}

// Parses the rest after the state space: [.align N] [.v2] .type name [dims] [= initialiser]. A
// declaration outside a parameter list may name several variables and ends with ';'.
std::uint32_t ParserState::ParseVariable(Space space, std::uint32_t function, Linkage linkage) {
  Variable prototype;
  prototype.space = space;
  prototype.function = function;
  prototype.linkage = linkage;
  ParseTypeOf(prototype);
  std::uint32_t index = kNoIndex;
  const bool in_list = space == Space::kParam && scopes_.size() < 2;
  do {
    Variable variable = prototype;
    variable.name = ExpectWord();
    std::uint64_t elements = 1;
    bool unsized = false;
    ParseArrayLength(variable, elements, unsized);
    variable.bytes *= elements;
    if (!in_list && Accept('=')) {
      ParseInitialiser(variable);
      if (unsized) variable.bytes = variable.initial.size();
    }
    if (failed()) return kNoIndex;
    if (variable.initial.size() > variable.bytes) {
      Fail("too many initialisers for '" + std::string(variable.name) + "'");
      return kNoIndex;
    }
    index = static_cast<std::uint32_t>(module_.variables.size());
    Scope& scope = function == kNoIndex || in_list ? scopes_.front() : scopes_.back();
    // Parameters of a kernel are found by name from its body; their names are unique.
    scope.variables[variable.name] = index;
    module_.variables.push_back(std::move(variable));
  } while (!in_list && Accept(','));
  if (!in_list) Expect(';');
  return index;
}

// Parses alignment, vector width, pointer attributes and the type of a declaration.
void ParserState::ParseTypeOf(Variable& variable) {
  unsigned vector = 1;
  std::uint64_t align = 0;
  bool pointer = false;
  while (token_.kind == Token::Kind::kWord && token_.text.starts_with('.')) {
    const std::string_view word = TakeDirective().substr(1);
    if (word == "align") {
      // After .ptr, .align is the alignment of the memory behind the pointer.
      const std::uint64_t given = ParseConstant();
      if (!pointer) align = given;
    } else if (word == "ptr") {
      pointer = true;
    } else if (word == "v2" || word == "v4") {
      vector = word == "v2" ? 2 : 4;
    } else if (word == "attribute") {
      Expect('(');
      while (!failed() && !Accept(')')) Take();
    } else if (const auto type = ParseType(word); type && IsFundamental(*type)) {
      variable.type = *type;
      variable.bytes = std::uint64_t{ByteWidth(*type)} * vector;
    } else if (word == "texref" || word == "samplerref" || word == "surfref") {
      variable.type = Type::kB64;
      variable.bytes = 8;
    } else if (word != "global" && word != "shared" && word != "const" && word != "local") {
      return Fail("unknown type '." + std::string(word) + "'");
    }
  }
  if (align == 0) align = variable.bytes;
  if (!std::has_single_bit(align) || align > kMaxVariableAlignment)
    return Fail("an alignment that is no power of 2");
  variable.align = static_cast<std::uint32_t>(align);
}

// Parses [n][m]...; `unsized` is set by an empty pair of brackets.
void ParserState::ParseArrayLength(Variable& variable, std::uint64_t& elements, bool& unsized) {
  while (Accept('[')) {
    if (Accept(']')) {
      unsized = true;
      elements = 0;
      continue;
    }
    const std::uint64_t length = ParseConstant();
    Expect(']');
    if (length != 0 && elements > kMaxVariableBytes / length / (variable.bytes + 1)) {
      return Fail("array too large");
    }
    elements *= length;
  }
}

// Appends little-endian bytes of an initialiser; the size is bounded.
void ParserState::AppendBits(Variable& variable, std::uint64_t bits, unsigned bytes) {
  if (variable.initial.size() + bytes > kMaxInitialiserBytes) return Fail("initialiser too large");
  for (unsigned i = 0; i < bytes; ++i) {
    variable.initial.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
  }
}

// Parses one element, or a nested list in braces.
void ParserState::ParseInitialiser(Variable& variable) {
  if (!Accept('{')) return ParseInitialiserElement(variable);
  if (++depth_ > 16) return Fail("initialiser nested too deeply");
  while (!failed() && !token_.Is('}')) {
    ParseInitialiser(variable);
    if (!Accept(',')) break;
  }
  --depth_;
  Expect('}');
}

void ParserState::ParseInitialiserElement(Variable& variable) {
  const unsigned element = ByteWidth(variable.type);
  const bool negative = Accept('-');
  if (token_.kind == Token::Kind::kWord) {
    return ParseAddressElement(variable, Take().text, element);
  }
  const Token token = Take();
  const auto number =
      token.kind == Token::Kind::kNumber ? ParseNumber(token.text) : std::optional<Literal>();
  if (!number) return Fail("expected a number before '" + std::string(token.text) + "'");
  // 0xFF(symbol) picks one byte of an address.
  if (!negative && Accept('(')) {
    const std::string_view name = ExpectWord();
    Relocation relocation{variable.initial.size(), element, name, kNoIndex, false, 0};
    if (name == "generic") {
      Expect('(');
      relocation.name = ExpectWord();
      Expect(')');
    }
    Expect(')');
    unsigned byte = 0;
    while (byte < 8 && number->bits != std::uint64_t{0xff} << (8 * byte)) ++byte;
    if (byte == 8) return Fail("an unusual address mask");
    relocation.bytes = 1;
    relocation.addend = byte;  // which one, counted from the lowest
    variable.relocations.push_back(relocation);
    return AppendBits(variable, 0, 1);
  }
  std::uint64_t bits = number->bits;
  if (number->is_float) {
    auto value = std::bit_cast<double>(bits);
    if (negative) value = -value;
    bits = variable.type == Type::kF32 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                       : std::bit_cast<std::uint64_t>(value);
  } else if (negative) {
    bits = std::uint64_t{0} - bits;
  }
  AppendBits(variable, bits, element);
}

// Parses an address: a name, or generic(name), with an optional addend. The name is resolved at the
// end of the module.
void ParserState::ParseAddressElement(Variable& variable, std::string_view name, unsigned element) {
  Relocation relocation{variable.initial.size(), element, name, kNoIndex, false, 0};
  if (name == "generic") {
    Expect('(');
    relocation.name = ExpectWord();
    if (Accept('+')) relocation.addend = static_cast<std::int64_t>(ParseConstant());
    Expect(')');
  }
  if (Accept('+')) relocation.addend += static_cast<std::int64_t>(ParseConstant());
  if (Accept('-')) relocation.addend -= static_cast<std::int64_t>(ParseConstant());
  variable.relocations.push_back(relocation);
  AppendBits(variable, 0, element);
}

}  // namespace torpor::ptx
