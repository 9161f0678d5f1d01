#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/units.h"

// How the text of a setting becomes a value. Errors say what is wrong with the text and how to
// write it; they do not say where it stands.
namespace torpor::server {

// "512MiB", "24 GiB", "1.5GiB", "80GB", "4096" (bytes).
absl::StatusOr<Bytes> ParseBytes(std::string_view text);

// "80ms", "1.5s", "2m", "250us". A unit is required, so that nobody takes ms for s.
absl::StatusOr<Duration> ParseDuration(std::string_view text);

// Decimal or 0x hexadecimal.
absl::StatusOr<std::uint64_t> ParseUnsigned(std::string_view text);

// Of an objective, above 0 and at most scheduler::kMaxPercentile: "0.98".
absl::StatusOr<double> ParsePercentile(std::string_view text);

// How much of what is shared one gets: scheduler::kLeastWeight to kMaxWeight.
absl::StatusOr<double> ParseWeight(std::string_view text);

// -1000 to 1000.
absl::StatusOr<int> ParsePriority(std::string_view text);

// "0,2,3". Empty text: no numbers.
absl::StatusOr<std::vector<int>> ParseIndexList(std::string_view text);

// "2MiB, 20MiB", each once. Empty text: no sizes.
absl::StatusOr<std::vector<Bytes>> ParseByteList(std::string_view text);

// A function's name: [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 characters (a DNS label, so that
// it can be a Kubernetes object too).
bool IsFunctionName(std::string_view text);

// host:port of an IPv4 address, a host name or an IPv6 address in brackets.
struct HostAndPort {
  std::string host;  // without brackets
  std::uint16_t port = 0;
};
absl::StatusOr<HostAndPort> ParseHostAndPort(std::string_view text);

// The candidate that `text` was most likely meant to be; empty where none is near.
std::string_view NearestName(std::string_view text,
                             const std::vector<std::string_view>& candidates);

}  // namespace torpor::server
