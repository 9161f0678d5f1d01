#include "emulator/node/document_reader.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

namespace torpor::emulator {
namespace {

std::string Text(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

std::string Joined(std::initializer_list<std::string_view> words) {
  std::string joined;
  for (const std::string_view word : words) {
    if (!joined.empty()) joined += ", ";
    joined += word;
  }
  return joined;
}

}  // namespace

void DocumentReader::Fail(const YAML::Node& node, const std::string& message) {
  if (failed()) return;
  problem_ = std::string(source_) + ":" + std::to_string(node.Mark().line + 1) + ": " + message;
}

bool DocumentReader::CheckKeys(const YAML::Node& node,
                               std::initializer_list<std::string_view> known) {
  if (!node.IsMap()) {
    Fail(node, "needs a mapping with keys of " + Joined(known));
    return false;
  }
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const auto key = entry.first.as<std::string>();
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      Fail(entry.first, "unknown key '" + key + "'; there are " + Joined(known));
      return false;
    }
    if (!seen.insert(key).second) {
      Fail(entry.first, "key '" + key + "' twice");
      return false;
    }
  }
  return true;
}

bool DocumentReader::CheckList(const YAML::Node& node, const std::string& what) {
  if (node.IsSequence() && node.size() != 0) return true;
  Fail(node, what + " must be a list of at least one entry");
  return false;
}

double DocumentReader::Number(const YAML::Node& node, const char* key, NumberRange range,
                              std::optional<double> fallback) {
  const YAML::Node value = node[key];
  if (!value && fallback) return *fallback;
  double number = NAN;
  const bool is_number = value && value.IsScalar() && YAML::convert<double>::decode(value, number);
  if (is_number && number >= range.min && number <= range.max) return number;
  Fail(value ? value : node,
       std::string(key) + " must be a number from " + Text(range.min) + " to " + Text(range.max));
  return range.max;
}

unsigned DocumentReader::Count(const YAML::Node& node, const std::string& what, unsigned min,
                               unsigned max) {
  int number = -1;
  const bool is_number = node.IsScalar() && YAML::convert<int>::decode(node, number);
  if (is_number && number >= static_cast<int>(min) && number <= static_cast<int>(max)) {
    return static_cast<unsigned>(number);
  }
  Fail(node,
       what + " must be a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  return min;
}

bool DocumentReader::Choice(const YAML::Node& node, const char* key, bool fallback) {
  const YAML::Node value = node[key];
  if (!value) return fallback;
  bool choice = fallback;
  if (!value.IsScalar() || !YAML::convert<bool>::decode(value, choice))
    Fail(value, std::string(key) + " must be true or false");
  return choice;
}

std::string DocumentReader::Name(const YAML::Node& node, const char* key) {
  const YAML::Node value = node[key];
  if (value && value.IsScalar() && !value.Scalar().empty()) return value.Scalar();
  Fail(value ? value : node, "needs a '" + std::string(key) + "'");
  return {};
}

}  // namespace torpor::emulator
