#include "server/executor/module_variables.h"

#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "base/fatbin.h"

namespace torpor::executor {
namespace {

// Bytes of PTX that are looked at; a hostile header may claim any size.
constexpr std::uint64_t kMostTextBytes = std::uint64_t{256} << 20;

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
    while (!rest_.empty()) {
      if (SkipComment() || SkipDirective(statement)) continue;
      const char c = Take();
      if (c == ';') return true;
      if (c == '{' && statement.find('=') == std::string::npos) {
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
  // .version, .target and the like end with their line.
  bool SkipDirective(const std::string& statement) {
    if (statement.find_first_not_of(" \t\r\n") != std::string::npos) return false;
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

template <typename T>
bool Read(std::span<const std::uint8_t> image, std::uint64_t offset, T& value) {
  if (offset > image.size() || sizeof value > image.size() - offset) return false;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return true;
}

std::string TextAt(std::span<const std::uint8_t> image, std::uint64_t offset) {
  if (offset >= image.size()) return {};
  const auto* const text = reinterpret_cast<const char*>(image.data() + offset);
  return {text, strnlen(text, image.size() - offset)};
}

// Objects that other modules may name and that lie in a section of global or constant memory.
void AppendCubinVariables(std::span<const std::uint8_t> image, std::vector<std::string>& names) {
  Elf64_Ehdr header;
  if (!Read(image, 0, header)) return;
  const auto section = [&](std::uint64_t index, Elf64_Shdr& found) {
    return index < header.e_shnum && Read(image, header.e_shoff + index * sizeof found, found);
  };
  Elf64_Shdr section_names;
  if (!section(header.e_shstrndx, section_names)) return;
  Elf64_Shdr table;
  for (std::uint64_t i = 0; section(i, table); ++i) {
    Elf64_Shdr texts;
    if (table.sh_type != SHT_SYMTAB || !section(table.sh_link, texts)) continue;
    Elf64_Sym symbol;
    for (std::uint64_t at = 0; at < table.sh_size; at += sizeof symbol) {
      if (!Read(image, table.sh_offset + at, symbol)) return;
      Elf64_Shdr home;
      const bool is_variable =
          ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
      if (!is_variable || !section(symbol.st_shndx, home)) continue;
      const std::string place = TextAt(image, section_names.sh_offset + home.sh_name);
      if (!place.starts_with(".nv.global") && !place.starts_with(".nv.constant")) continue;
      names.push_back(TextAt(image, texts.sh_offset + symbol.st_name));
    }
  }
}

void AppendEntryVariables(const FatbinEntry& entry, std::vector<std::string>& names) {
  if (entry.kind == FatbinEntry::Kind::kPtx && entry.uncompressed_size <= kMostTextBytes) {
    const auto text = DecodePtx(entry);
    if (text.ok()) AppendPtxVariables(*text, names);
  }
  if (entry.kind == FatbinEntry::Kind::kElf && entry.coding == FatbinEntry::Coding::kRaw) {
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(entry.stored.data());
    AppendCubinVariables({begin, entry.stored.size()}, names);
  }
}

}  // namespace

void AppendPtxVariables(std::string_view text, std::vector<std::string>& names) {
  Statements statements(text);
  std::string statement;
  while (statements.Next(statement)) {
    if (const std::string_view name = VariableOf(statement); !name.empty())
      names.emplace_back(name);
  }
}

std::vector<std::string> VariablesOf(std::span<const std::uint8_t> image) {
  std::vector<std::string> names;
  std::uint32_t magic = 0;
  if (!Read(image, 0, magic)) return names;
  if (magic == kFatbinMagic) {
    const auto entries = ReadFatbin(std::as_bytes(image));
    if (!entries.ok()) return names;
    for (const FatbinEntry& entry : *entries) AppendEntryVariables(entry, names);
  } else if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) {
    AppendCubinVariables(image, names);
  } else {
    AppendPtxVariables(TextAt(image, 0), names);
  }
  return names;
}

}  // namespace torpor::executor
