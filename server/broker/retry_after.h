#pragma once

#include <optional>

#include "absl/status/status.h"
#include "base/clock.h"

namespace torpor::server {

// Adds to an error after which time another try may succeed.
absl::Status WithRetryAfter(absl::Status status, Duration after);

// Returns what WithRetryAfter has added, in whole seconds, rounded up.
std::optional<int> RetryAfterSeconds(const absl::Status& status);

}  // namespace torpor::server
