#include "server/settings/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "base/status_macros.h"

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

// Returns the number times its unit, or -1 for text of another form.
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

// Writes `value` in its largest divisor among the units, which descend.
std::string FormatInUnits(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    const auto factor = static_cast<std::uint64_t>(unit.factor);
    if (value >= factor && value % factor == 0)
      return fmt::format("{}{}", value / factor, unit.name);
  }
  return fmt::format("{}", value);
}

}  // namespace

std::string Quoted(std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::string quoted = "\"";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    quoted += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return quoted + (text.size() > kShown ? "...\"" : "\"");
}

absl::StatusOr<Bytes> ParseBytes(std::string_view text) {
  const double bytes = NumberWithUnit(text, kByteUnits);
  if (bytes < 0 || bytes > kLargest) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a size; write a number and a unit, for example 512MiB or 2GiB", Quoted(text)));
  }
  return static_cast<Bytes>(bytes);
}

std::string FormatBytes(Bytes bytes) {
  constexpr std::array<Unit, 4> kUnits = {
      {{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}}};
  return FormatInUnits(bytes, kUnits);
}

absl::StatusOr<Duration> ParseDuration(std::string_view text) {
  const double nanoseconds = NumberWithUnit(text, kDurationUnits);
  if (nanoseconds < 0 || nanoseconds > kLargest) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a duration; write a number and a unit, for example 80ms or 2s", Quoted(text)));
  }
  return Duration(static_cast<Duration::rep>(nanoseconds));
}

std::string FormatDuration(Duration duration) {
  constexpr std::array<Unit, 5> kUnits = {
      {{"h", 3600e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}}};
  if (duration == Duration::zero()) return "0s";
  return FormatInUnits(static_cast<std::uint64_t>(duration.count()), kUnits);
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

double ParseFixedNumber(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const bool is_number = error == std::errc() && stop == end;
  return is_number ? number : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace torpor::server
