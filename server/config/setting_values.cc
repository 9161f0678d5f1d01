#include "server/config/setting_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "scheduler/events.h"

namespace torpor::server {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 11> kByteUnits = {{{"B", 1},
                                              {"kB", 1e3},
                                              {"KB", 1e3},
                                              {"MB", 1e6},
                                              {"GB", 1e9},
                                              {"TB", 1e12},
                                              {"KiB", 0x1p10},
                                              {"MiB", 0x1p20},
                                              {"GiB", 0x1p30},
                                              {"TiB", 0x1p40},
                                              {"", 1}}};
constexpr std::array<Unit, 6> kDurationUnits = {
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};

// The largest value that a double carries into a 64-bit integer without overflow.
constexpr double kLargest = 0x1p62;

std::string Quoted(std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::string quoted = "\"";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    quoted += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return quoted + (text.size() > kShown ? "...\"" : "\"");
}

// "0.98", "3": nothing else may stand there.
std::optional<double> FixedNumber(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// The number times its unit; negative where the text is not one.
template <std::size_t N>
double NumberWithUnit(std::string_view text, const std::array<Unit, N>& units) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return -1;
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const auto known = std::ranges::find(units, unit, &Unit::name);
  if (known == units.end()) return -1;
  return number * known->factor;
}

// Takes the first item, without blanks around it, off a comma-separated list.
std::string_view TakeItem(std::string_view& list) {
  const std::size_t comma = std::min(list.find(','), list.size());
  std::string_view item = list.substr(0, comma);
  while (item.starts_with(' ')) item.remove_prefix(1);
  while (item.ends_with(' ')) item.remove_suffix(1);
  list.remove_prefix(std::min(comma + 1, list.size()));
  return item;
}

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

bool IsHostCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '-' || c == '_';
}

}  // namespace

absl::StatusOr<Bytes> ParseBytes(std::string_view text) {
  const double bytes = NumberWithUnit(text, kByteUnits);
  if (bytes < 0 || bytes > kLargest) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a size; write a number and a unit, for example 512MiB or 2GiB", Quoted(text)));
  }
  return static_cast<Bytes>(bytes);
}

absl::StatusOr<Duration> ParseDuration(std::string_view text) {
  const double nanoseconds = NumberWithUnit(text, kDurationUnits);
  if (nanoseconds < 0 || nanoseconds > kLargest) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a duration; write a number and a unit, for example 80ms or 2s", Quoted(text)));
  }
  return Duration(static_cast<Duration::rep>(nanoseconds));
}

absl::StatusOr<std::uint64_t> ParseUnsigned(std::string_view text) {
  std::string_view digits = text;
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    digits.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  if (error != std::errc() || stop != end) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a whole number; write digits, for example 4 or 0x10", Quoted(text)));
  }
  return value;
}

absl::StatusOr<double> ParsePercentile(std::string_view text) {
  const std::optional<double> share = FixedNumber(text);
  // A NaN is not above 0 either.
  if (!share || !(*share > 0) || *share >= 1) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a share; write a number above 0 and below 1, for example 0.98", Quoted(text)));
  }
  if (*share > scheduler::kMaxPercentile) {
    return absl::InvalidArgumentError(
        fmt::format("{} is above {}: one late request would weigh more than ten thousand in time; "
                    "write at most {}",
                    Quoted(text), scheduler::kMaxPercentile, scheduler::kMaxPercentile));
  }
  return *share;
}

absl::StatusOr<double> ParseWeight(std::string_view text) {
  const std::optional<double> weight = FixedNumber(text);
  if (!weight || !(*weight >= scheduler::kLeastWeight) || *weight > scheduler::kMaxWeight) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a weight; write a number from {} to {}", Quoted(text),
                    scheduler::kLeastWeight, scheduler::kMaxWeight));
  }
  return *weight;
}

absl::StatusOr<int> ParsePriority(std::string_view text) {
  constexpr int kMax = 1000;
  int priority = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, priority);
  if (error != std::errc() || stop != end || priority < -kMax || priority > kMax) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a priority; write a whole number from {} to {}", Quoted(text), -kMax, kMax));
  }
  return priority;
}

absl::StatusOr<std::vector<int>> ParseIndexList(std::string_view text) {
  constexpr std::uint64_t kMaxIndex = 1023;
  std::vector<int> indices;
  while (!text.empty()) {
    const std::string_view item = TakeItem(text);
    TORPOR_ASSIGN_OR_RETURN(const std::uint64_t index, ParseUnsigned(item));
    if (index > kMaxIndex) {
      return absl::InvalidArgumentError(
          fmt::format("{} is no index; use 0 to {}", index, kMaxIndex));
    }
    if (std::ranges::count(indices, static_cast<int>(index)) != 0) {
      return absl::InvalidArgumentError(fmt::format("{} stands twice; name each once", index));
    }
    indices.push_back(static_cast<int>(index));
  }
  return indices;
}

absl::StatusOr<std::vector<Bytes>> ParseByteList(std::string_view text) {
  std::vector<Bytes> sizes;
  while (!text.empty()) {
    const std::string_view item = TakeItem(text);
    TORPOR_ASSIGN_OR_RETURN(const Bytes size, ParseBytes(item));
    if (std::ranges::count(sizes, size) != 0) {
      return absl::InvalidArgumentError(fmt::format("{} stands twice; name each once", item));
    }
    sizes.push_back(size);
  }
  return sizes;
}

bool IsFunctionName(std::string_view text) {
  constexpr std::size_t kMaxLength = 63;
  if (text.empty() || text.size() > kMaxLength || text.front() == '-' || text.back() == '-') {
    return false;
  }
  return std::ranges::all_of(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

absl::StatusOr<HostAndPort> ParseHostAndPort(std::string_view text) {
  const absl::Status error = absl::InvalidArgumentError(fmt::format(
      "{} is not an address; write host:port, for example 127.0.0.1:8000", Quoted(text)));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return error;
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  std::uint16_t port = 0;
  const char* const end = port_text.data() + port_text.size();
  const auto [stop, port_error] = std::from_chars(port_text.data(), end, port);
  if (port_error != std::errc() || stop != end) return error;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    const bool is_ipv6 = std::ranges::all_of(host, [](char c) {
      return std::string_view("0123456789abcdefABCDEF:.").find(c) != std::string_view::npos;
    });
    if (!is_ipv6) return error;
  } else if (host.empty() || !std::ranges::all_of(host, IsHostCharacter)) {
    return error;
  }
  return HostAndPort{std::string(host), port};
}

std::string_view NearestName(std::string_view text,
                             const std::vector<std::string_view>& candidates) {
  // Longer texts are never near; the distance is quadratic and files come from outside.
  constexpr std::size_t kLongestName = 64;
  if (text.size() > kLongestName) return {};
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(text, candidate);
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace torpor::server
