#include "server/executor/ptx_variables.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace torpor::executor {
namespace {

bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Splits PTX into what lies outside function bodies, comments and strings.
class Statements {
 public:
  explicit Statements(std::string_view text) : rest_(text) {}

  // The next statement without its semicolon; false at the end.
  bool Next(std::string& statement) {
    statement.clear();
    bool has_value = false;
    while (!rest_.empty()) {
      if (SkipComment() || (statement.empty() && (SkipBlank() || SkipDirective()))) continue;
      const char c = Take();
      if (c == ';') return true;
      has_value |= c == '=';
      if (c == '{' && !has_value) {
        SkipBody();
        statement.clear();
      } else {
        statement += c;
      }
    }
    return false;
  }

 private:
  char Take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  void SkipBehind(std::string_view end) {
    const std::size_t at = rest_.find(end);
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + end.size());
  }
  bool SkipComment() {
    if (rest_.starts_with("//")) return SkipBehind("\n"), true;
    if (rest_.starts_with("/*")) return SkipBehind("*/"), true;
    if (rest_.front() == '"') return rest_.remove_prefix(1), SkipBehind("\""), true;
    return false;
  }
  bool SkipBlank() {
    if (std::isspace(static_cast<unsigned char>(rest_.front())) == 0) return false;
    return rest_.remove_prefix(1), true;
  }
  // .version, .target and the like end with their line.
  bool SkipDirective() {
    for (const std::string_view directive :
         {".version", ".target", ".address_size", ".file", ".loc", ".pragma"}) {
      if (rest_.starts_with(directive)) return SkipBehind("\n"), true;
    }
    return false;
  }
  void SkipBody() {
    for (int depth = 1; depth > 0 && !rest_.empty();) {
      if (SkipComment()) continue;
      const char c = Take();
      depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    }
  }

  std::string_view rest_;
};

// The next word of a statement: a directive, a name or a number, or a single other character.
// Empty at the end.
std::string_view NextWord(std::string_view& rest) {
  while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.front())) != 0)
    rest.remove_prefix(1);
  std::size_t length = rest.empty() ? 0 : 1;
  if (!rest.empty() && (IsNameChar(rest.front()) || rest.front() == '.')) {
    while (length < rest.size() && IsNameChar(rest[length])) ++length;
  }
  const std::string_view word = rest.substr(0, length);
  rest.remove_prefix(length);
  return word;
}

bool IsName(std::string_view word) {
  return !word.empty() && IsNameChar(word.front()) && !IsDigit(word.front());
}

bool HoldsAddress(std::string_view initializer) {
  for (auto word = NextWord(initializer); !word.empty(); word = NextWord(initializer)) {
    if (IsName(word)) return true;
  }
  return false;
}

// Of a declaration of a variable its name; of any other statement nothing.
std::string_view VariableOf(std::string_view statement) {
  std::string_view rest = statement;
  std::string_view word = NextWord(rest);
  while (word == ".visible" || word == ".weak" || word == ".common") word = NextWord(rest);
  if (word != ".global" && word != ".const") return {};
  while (!word.empty() && !IsName(word)) {
    if (word == "(") rest.remove_prefix(std::min(rest.size(), rest.find(')')));  // .attribute
    word = NextWord(rest);
  }
  const std::size_t equals = rest.find('=');
  const bool holds_address =
      equals != std::string_view::npos && HoldsAddress(rest.substr(equals + 1));
  // A dollar begins the compiler's own constants.
  return holds_address || word.starts_with('$') ? std::string_view() : word;
}

}  // namespace

void FindPtxVariables(std::string_view text, VariableNames& names) {
  Statements statements(text);
  std::string statement;
  while (!names.is_full() && statements.Next(statement)) {
    if (const auto name = VariableOf(statement); !name.empty()) names.Add(name);
  }
}

}  // namespace torpor::executor
