#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// Text of values in torpord's configuration only; server/settings/value_text.h has the others.
// Errors tell the mistake and the right form, not the place.
namespace torpor::server {

// The percentile of an objective, above 0 and at most scheduler::kMaxPercentile: "0.98".
absl::StatusOr<double> ParsePercentile(std::string_view text);

// A tenant's weight, scheduler::kMinWeight to kMaxWeight.
absl::StatusOr<double> ParseWeight(std::string_view text);

// A number without exponent, `min` to `max`.
absl::StatusOr<double> ParseNumber(std::string_view text, double min, double max);

// -1000 to 1000.
absl::StatusOr<int> ParsePriority(std::string_view text);

// Whether `text` can name a function: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 characters (a DNS
// label, so that it can name a Kubernetes object too).
bool IsFunctionName(std::string_view text);

// host:port of an IPv4 address, a host name or an IPv6 address in brackets.
struct HostAndPort {
  std::string host;  // without brackets
  std::uint16_t port = 0;
};
absl::StatusOr<HostAndPort> ParseHostAndPort(std::string_view text);

// Guesses which of the candidates a misspelt `text` means, by edit distance. Returns empty text if
// no candidate is near.
std::string_view NearestName(std::string_view text,
                             const std::vector<std::string_view>& candidates);

}  // namespace torpor::server
