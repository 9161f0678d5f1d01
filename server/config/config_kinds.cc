#include "server/config/config_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "scheduler/setup.h"
#include "server/config/setting_values.h"
#include "server/settings/value_text.h"
#include "server/settings/words.h"

namespace torpor::server {
namespace {

std::vector<std::string_view> PoliciesThatEvict() {
  std::vector<std::string_view> names = scheduler::SetupNames();
  std::erase_if(names,
                [](std::string_view name) { return !scheduler::MakeSetup(name)->options.evicts; });
  return names;
}

}  // namespace

absl::StatusOr<std::string> AddressKind::Parse(std::string_view text) const {
  if (!text.empty()) TORPOR_RETURN_IF_ERROR(ParseHostAndPort(text).status());
  return std::string(text);
}

absl::StatusOr<std::string> NameKind::Parse(std::string_view text) const {
  if (IsFunctionName(text) || (may_be_empty && text.empty())) return std::string(text);
  return absl::InvalidArgumentError(fmt::format(
      "{} is not a name; use 1 to 63 of a-z, 0-9 and -, no - at either end", Quoted(text)));
}

absl::StatusOr<std::string> PolicyKind::Parse(std::string_view text) const {
  const std::vector<std::string_view> names = PoliciesThatEvict();
  if (std::ranges::count(names, text) > 0) return std::string(text);
  if (std::ranges::count(scheduler::SetupNames(), text) > 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} is for torpor-sim only, since it never evicts; expected {}", Quoted(text),
                    ListWords(names)));
  }
  return absl::InvalidArgumentError(
      fmt::format("unknown value {}; expected {}", Quoted(text), ListWords(names)));
}

absl::StatusOr<std::uint64_t> AddressBaseKind::Parse(std::string_view text) const {
  constexpr std::uint64_t kUserSpaceEnd = 0x7000'0000'0000;
  TORPOR_ASSIGN_OR_RETURN(const std::uint64_t base, ParseUnsigned(text));
  if (base == 0 || base % kGiB != 0 || base >= kUserSpaceEnd) {
    return absl::InvalidArgumentError(
        fmt::format("{:#x} does not fit; use a multiple of 1GiB below {:#x}", base, kUserSpaceEnd));
  }
  return base;
}

std::string AddressBaseKind::Format(std::uint64_t value) const {
  return fmt::format("{:#x}", value);
}

absl::StatusOr<double> PercentileKind::Parse(std::string_view text) const {
  return ParsePercentile(text);
}
std::string PercentileKind::Format(double value) const { return fmt::format("{}", value); }

absl::StatusOr<double> WeightKind::Parse(std::string_view text) const { return ParseWeight(text); }
std::string WeightKind::Format(double value) const { return fmt::format("{}", value); }

absl::StatusOr<double> RealKind::Parse(std::string_view text) const {
  return ParseNumber(text, min, max);
}
std::string RealKind::Format(double value) const { return fmt::format("{}", value); }

absl::StatusOr<int> PriorityKind::Parse(std::string_view text) const { return ParsePriority(text); }

absl::StatusOr<std::vector<std::string>> WordsKind::Parse(std::string_view text) const {
  std::vector<std::string> words;
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return words;
  if (text[begin] != '[') {
    std::istringstream stream{std::string(text)};
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
  }
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const bool is_list = json.is_array() &&
                       std::ranges::all_of(json, [](const auto& word) { return word.is_string(); });
  if (!is_list) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is no list of words; write for example [\"/usr/bin/python3\", \"serve.py\"]",
        text));
  }
  for (const auto& word : json) {
    words.push_back(word.get<std::string>());
    if (words.back().find('\0') != std::string::npos) {
      return absl::InvalidArgumentError("a word has a zero byte in it; drop the byte");
    }
  }
  return words;
}

std::string WordsKind::Format(const std::vector<std::string>& value) const {
  if (value.empty()) return "";
  // What is no UTF-8 came from nowhere but a file in another encoding.
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<std::string> UserKind::Parse(std::string_view text) const {
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ':');
  const bool has_gap = std::count(parts.begin(), parts.end(), "") > 0;
  if (text.empty() || (parts.size() <= 2 && !has_gap)) return std::string(text);
  return absl::InvalidArgumentError(
      fmt::format("\"{}\" is no user; write a name, or name:group", text));
}

}  // namespace torpor::server
