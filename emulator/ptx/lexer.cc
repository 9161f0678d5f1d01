#include "emulator/ptx/lexer.h"

#include <cctype>

namespace torpor::ptx {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

}  // namespace

// Skips white space and comments, and counts lines.
void Lexer::SkipBlanks() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++position_;
    } else if (text_.substr(position_, 2) == "//") {
      const std::size_t end = text_.find('\n', position_);
      position_ = end == std::string_view::npos ? text_.size() : end;
    } else if (text_.substr(position_, 2) == "/*") {
      const std::size_t end = text_.find("*/", position_ + 2);
      const std::size_t stop = end == std::string_view::npos ? text_.size() : end + 2;
      for (; position_ < stop; ++position_) line_ += text_[position_] == '\n' ? 1 : 0;
    } else {
      return;
    }
  }
}

Token Lexer::Take(Token::Kind kind, std::size_t length) {
  const Token token{kind, text_.substr(position_, length), line_};
  position_ += length;
  return token;
}

// Length of the word at the position: name characters, dots and "::".
std::size_t Lexer::WordLength() const {
  std::size_t i = position_;
  while (i < text_.size()) {
    const char c = text_[i];
    if (IsNameCharacter(c) || c == '.') {
      ++i;
    } else if (text_.substr(i, 2) == "::") {
      i += 2;
    } else {
      break;
    }
  }
  return i - position_;
}

// Length of the number at the position: hexadecimal, binary, or decimal with fraction and exponent.
std::size_t Lexer::NumberLength() const {
  std::size_t i = position_;
  const bool hexadecimal = text_[i] == '0' && i + 1 < text_.size() &&
                           std::isalpha(static_cast<unsigned char>(text_[i + 1])) != 0;
  while (i < text_.size()) {
    const char c = text_[i];
    const bool exponent_sign = (c == '+' || c == '-') && !hexadecimal && i > position_ &&
                               (text_[i - 1] == 'e' || text_[i - 1] == 'E');
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && !exponent_sign) break;
    ++i;
  }
  return i - position_;
}

Token Lexer::Next() {
  SkipBlanks();
  if (position_ >= text_.size()) return Token{Token::Kind::kEnd, {}, line_};
  const char c = text_[position_];
  if (IsDigit(c)) return Take(Token::Kind::kNumber, NumberLength());
  if (IsNameCharacter(c) || c == '.') return Take(Token::Kind::kWord, WordLength());
  if (c == '"') {
    const std::size_t end = text_.find('"', position_ + 1);
    if (end == std::string_view::npos) return Take(Token::Kind::kBad, text_.size() - position_);
    return Take(Token::Kind::kString, end + 1 - position_);
  }
  if (static_cast<unsigned char>(c) >= 0x80 || std::isprint(static_cast<unsigned char>(c)) == 0) {
    return Take(Token::Kind::kBad, 1);
  }
  return Take(Token::Kind::kPunctuation, 1);
}

}  // namespace torpor::ptx
