#pragma once

#include <yaml-cpp/yaml.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace torpor::emulator {

// Inclusive bounds of a number.
struct NumberRange {
  double min;
  double max;
};

// Reads values of a YAML document strictly and keeps the first problem, with its line. After a
// failure values are meaningless, but in range. Not thread-safe.
class DocumentReader {
 public:
  // `source` names the document in messages.
  explicit DocumentReader(std::string_view source) : source_(source) {}

  bool failed() const { return !problem_.empty(); }
  const std::string& problem() const { return problem_; }
  // Records `message` for the line of `node`, unless there is a problem already.
  void Fail(const YAML::Node& node, const std::string& message);

  // Whether `node` is a mapping with no keys but `known`, each at most once. Fails otherwise.
  bool CheckKeys(const YAML::Node& node, std::initializer_list<std::string_view> known);
  // Whether `node` is a list of at least one entry. Fails otherwise.
  bool CheckList(const YAML::Node& node, const std::string& what);

  // Returns the number under `key`. Fails if the key is missing without a fallback.
  double Number(const YAML::Node& node, const char* key, NumberRange range,
                std::optional<double> fallback = std::nullopt);
  // Returns `node` itself as a whole number.
  unsigned Count(const YAML::Node& node, const std::string& what, unsigned min, unsigned max);
  // Returns `true` or `false` under `key`, or the fallback.
  bool Choice(const YAML::Node& node, const char* key, bool fallback);
  // Returns the text under `key`. Fails if the text is missing or empty.
  std::string Name(const YAML::Node& node, const char* key);
  // Returns the meaning of the word under `key`, by a table of pairs. Fails for words of no entry.
  template <typename Table>
  auto Word(const YAML::Node& node, const char* key, const Table& table);

 private:
  const std::string_view source_;
  std::string problem_;
};

template <typename Table>
auto DocumentReader::Word(const YAML::Node& node, const char* key, const Table& table) {
  const YAML::Node value = node[key];
  std::string known;
  for (const auto& [word, meaning] : table) {
    if (value && value.IsScalar() && value.Scalar() == word) return meaning;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  Fail(value ? value : node, std::string("'") + key + "' must be one of " + known);
  return table.front().second;
}

}  // namespace torpor::emulator
