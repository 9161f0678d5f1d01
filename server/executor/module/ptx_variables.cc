#include "server/executor/module/ptx_variables.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string>

#include "server/executor/gpu/compiler_constant.h"

namespace torpor::executor {
namespace {

bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

void SkipBehind(std::string_view end, std::string_view& rest) {
  const std::size_t at = rest.find(end);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + end.size());
}

// Skips a comment or string at the begin of `rest`, which must not be empty; returns whether there
// was one.
bool SkipComment(std::string_view& rest) {
  if (rest.starts_with("//")) return SkipBehind("\n", rest), true;
  if (rest.starts_with("/*")) return SkipBehind("*/", rest), true;
  if (rest.front() == '"') return rest.remove_prefix(1), SkipBehind("\"", rest), true;
  return false;
}

// Splits PTX into statements outside function bodies, comments and strings.
class Statements {
 public:
  explicit Statements(std::string_view text) : rest_(text) {}

  // Reads the next statement, without semicolon; returns false at the end.
  bool Next(std::string& statement) {
    statement.clear();
    bool has_value = false;
    while (!rest_.empty()) {
      if (SkipComment(rest_) || (statement.empty() && (SkipBlank() || SkipDirective()))) continue;
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
  bool SkipBlank() {
    if (std::isspace(static_cast<unsigned char>(rest_.front())) == 0) return false;
    return rest_.remove_prefix(1), true;
  }
  // Directives like .version and .target end with the line.
  bool SkipDirective() {
    for (const std::string_view directive :
         {".version", ".target", ".address_size", ".file", ".loc", ".pragma"}) {
      if (rest_.starts_with(directive)) return SkipBehind("\n", rest_), true;
    }
    return false;
  }
  void SkipBody() {
    for (int depth = 1; depth > 0 && !rest_.empty();) {
      if (SkipComment(rest_)) continue;
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

// Returns the variable's name in a declaration; empty for any other statement.
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

// Splits PTX into words (see NextWord), without comments and strings.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  // Empty at the end.
  std::string_view Next() {
    while (!rest_.empty() && (SkipBlank() || SkipComment(rest_))) {
    }
    return NextWord(rest_);
  }

 private:
  bool SkipBlank() {
    if (std::isspace(static_cast<unsigned char>(rest_.front())) == 0) return false;
    return rest_.remove_prefix(1), true;
  }

  std::string_view rest_;
};

// Reads a declaration up to the value or end; returns the declared name, or an empty string for
// several names.
std::string_view DeclaredName(Words& words) {
  std::string_view word = words.Next();
  bool in_attribute = false;
  for (; !word.empty() && (in_attribute || !IsName(word)); word = words.Next()) {
    in_attribute = word == "(" || (in_attribute && word != ")");
  }
  const std::string_view name = word;
  while (!word.empty() && word != ";" && word != "=" && word != ",") word = words.Next();
  return word == "," ? std::string_view() : name;
}

// Returns the variables in global memory, each as often as declared; nullopt if the text deviates
// from nvcc's style of declarations.
std::optional<std::multiset<std::string_view>> GlobalsOf(std::string_view text) {
  std::multiset<std::string_view> globals;
  Words words(text);
  int braces = 0;
  int parentheses = 0;
  std::string_view last = ";";
  for (std::string_view word = words.Next(); !word.empty(); word = words.Next()) {
    braces += word == "{" ? 1 : word == "}" ? -1 : 0;
    parentheses += word == "(" ? 1 : word == ")" ? -1 : 0;
    const bool begins = last == ";" || last == "{" || last == "}" || last == ":";
    last = word;
    // Elsewhere `.global` qualifies a pointer or an instruction.
    if (word != ".global" || parentheses > 0 || (braces > 0 && !begins)) continue;
    const std::string_view name = DeclaredName(words);
    if (braces > 0 || name.empty()) return std::nullopt;
    if (!IsCompilerConstant(name)) globals.insert(name);
  }
  return globals;
}

}  // namespace

bool PtxMayUseVariables(std::string_view text) {
  const auto globals = GlobalsOf(text);
  if (!globals) return true;
  if (globals->empty()) return false;
  std::size_t mentions = 0;
  Words words(text);
  for (std::string_view word = words.Next(); !word.empty(); word = words.Next()) {
    if (globals->contains(word)) ++mentions;
  }
  return mentions > globals->size();
}

void FindPtxVariables(std::string_view text, VariableNames& names) {
  Statements statements(text);
  std::string statement;
  while (!names.is_full() && statements.Next(statement)) {
    if (const auto name = VariableOf(statement); !name.empty()) names.Add(name);
  }
}

}  // namespace torpor::executor
