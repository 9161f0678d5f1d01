#pragma once

#include <yaml-cpp/yaml.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace torpor::emulator {

struct NumberRange {
  double least;
  double most;
};

// Reads values of a YAML document strictly and keeps the first thing that is wrong, with its line.
// What it gives after a failure is of no use, but in range.
class DocumentReader {
 public:
  // `source` names the document in messages.
  explicit DocumentReader(std::string_view source) : source_(source) {}

  bool failed() const { return !problem_.empty(); }
  const std::string& problem() const { return problem_; }
  void Fail(const YAML::Node& node, const std::string& message);

  // Whether `node` is a mapping of no other keys than these, each at most once.
  bool CheckKeys(const YAML::Node& node, std::initializer_list<std::string_view> known);
  // Whether it is a list of at least one entry.
  bool CheckList(const YAML::Node& node, const std::string& what);

  // The number under `key`, which must be there unless there is a fallback.
  double Number(const YAML::Node& node, const char* key, NumberRange range,
                std::optional<double> fallback = std::nullopt);
  // `node` itself as a whole number.
  unsigned Count(const YAML::Node& node, const std::string& what, unsigned least, unsigned most);
  // `true` or `false` under `key`, or the fallback.
  bool Choice(const YAML::Node& node, const char* key, bool fallback);
  // The text under `key`, which must be there and not empty.
  std::string Name(const YAML::Node& node, const char* key);

 private:
  const std::string_view source_;
  std::string problem_;
};

}  // namespace torpor::emulator
