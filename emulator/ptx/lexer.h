#pragma once

#include <cstdint>
#include <string_view>

namespace torpor::ptx {

// A piece of PTX text; `text` points into the module's text.
struct Token {
  enum class Kind : std::uint8_t { kEnd, kWord, kNumber, kString, kPunctuation, kBad };
  Kind kind = Kind::kEnd;
  std::string_view text;
  std::uint32_t line = 1;

  bool Is(char punctuation) const {
    return kind == Kind::kPunctuation && text.front() == punctuation;
  }
  bool Is(std::string_view word) const { return kind == Kind::kWord && text == word; }
};

// Splits PTX into tokens. A word is a directive, an opcode with its modifiers, or a name:
// "ld.global.f32", ".reg", "%tid.x", "$L__BB0_1". The text must outlive the tokens.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  // Returns kEnd at the end of the text, again and again.
  Token Next();

 private:
  void SkipBlanks();
  Token Take(Token::Kind kind, std::size_t length);
  std::size_t WordLength() const;
  std::size_t NumberLength() const;

  std::string_view text_;
  std::size_t position_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace torpor::ptx
