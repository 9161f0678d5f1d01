#include "server/config/setting_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "base/status_macros.h"
#include "scheduler/events.h"
#include "server/settings/value_text.h"

namespace torpor::server {
namespace {

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

absl::StatusOr<double> ParsePercentile(std::string_view text) {
  const double share = ParseFixedNumber(text);
  // The negation refuses a NaN too.
  if (!(share > 0 && share < 1)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is not a share; write a number above 0 and below 1, for example 0.98", Quoted(text)));
  }
  if (share > scheduler::kMaxPercentile) {
    return absl::InvalidArgumentError(
        fmt::format("{} is above {}: one late request would weigh more than ten thousand in time; "
                    "write at most {}",
                    Quoted(text), scheduler::kMaxPercentile, scheduler::kMaxPercentile));
  }
  return share;
}

absl::StatusOr<double> ParseWeight(std::string_view text) {
  const double weight = ParseFixedNumber(text);
  if (!(weight >= scheduler::kMinWeight && weight <= scheduler::kMaxWeight)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a weight; write a number from {} to {}", Quoted(text),
                    scheduler::kMinWeight, scheduler::kMaxWeight));
  }
  return weight;
}

absl::StatusOr<double> ParseNumber(std::string_view text, double min, double max) {
  const double number = ParseFixedNumber(text);
  if (number >= min && number <= max) return number;
  return absl::InvalidArgumentError(fmt::format(
      "{} is not a number from {} to {}; write one, for example {}", Quoted(text), min, max, min));
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
  constexpr std::size_t kMaxNameLength = 64;
  if (text.size() > kMaxNameLength) return {};
  std::string_view nearest;
  std::size_t min_distance = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(text, candidate);
    if (distance < min_distance) {
      min_distance = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace torpor::server
