#include "examples/service/json_numbers.h"

#include <cctype>
#include <charconv>
#include <cstdio>

namespace torpor::examples {
namespace {

constexpr int kMaxDepth = 8;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::optional<std::map<std::string, std::vector<double>>> Object() {
    std::map<std::string, std::vector<double>> members;
    if (!Take('{')) return std::nullopt;
    if (!Take('}')) {
      do {
        std::string name;
        if (!String(&name) || !Take(':') || !Value(&members[name], 0)) return std::nullopt;
      } while (Take(','));
      if (!Take('}')) return std::nullopt;
    }
    SkipSpace();
    if (!text_.empty()) return std::nullopt;
    return members;
  }

 private:
  bool Value(std::vector<double>* numbers, int depth) {
    if (!Take('[')) return Number(numbers);
    if (depth == kMaxDepth) return false;
    if (Take(']')) return true;
    do {
      if (!Value(numbers, depth + 1)) return false;
    } while (Take(','));
    return Take(']');
  }

  bool Number(std::vector<double>* numbers) {
    SkipSpace();
    double value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) return false;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    numbers->push_back(value);
    return true;
  }

  bool String(std::string* value) {
    if (!Take('"')) return false;
    const std::size_t end = text_.find('"');
    if (end == std::string_view::npos) return false;
    *value = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return true;
  }

  bool Take(char expected) {
    SkipSpace();
    if (text_.empty() || text_.front() != expected) return false;
    text_.remove_prefix(1);
    return true;
  }

  void SkipSpace() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front())) != 0) {
      text_.remove_prefix(1);
    }
  }

  std::string_view text_;
};

}  // namespace

std::optional<std::map<std::string, std::vector<double>>> ParseNumbers(std::string_view text) {
  return Parser(text).Object();
}

std::string FormatNumbers(const float* values, std::size_t count, int digits) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i) {
    char number[64];
    std::snprintf(number, sizeof(number), "%s%.*f", i == 0 ? "" : ",", digits,
                  static_cast<double>(values[i]));
    text += number;
  }
  return text + "]";
}

}  // namespace torpor::examples
