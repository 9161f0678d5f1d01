#include "server/broker/retry_after.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace torpor::server {
namespace {

constexpr const char* kPayload = "torpor/retry-after-seconds";
constexpr std::int64_t kMaxSeconds = 86'400;  // a day

}  // namespace

absl::Status WithRetryAfter(absl::Status status, Duration after) {
  const std::int64_t seconds = std::chrono::ceil<std::chrono::seconds>(after).count();
  status.SetPayload(kPayload,
                    absl::Cord(absl::StrCat(std::clamp<std::int64_t>(seconds, 1, kMaxSeconds))));
  return status;
}

std::optional<int> RetryAfterSeconds(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  int seconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &seconds)) return std::nullopt;
  return seconds;
}

}  // namespace torpor::server
