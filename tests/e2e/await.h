#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"

namespace torpor::e2e {

// How long what other processes do may take before a test gives up.
inline constexpr Duration kPatience = std::chrono::seconds(60);

// Blocks until `is_so`, which is asked at once and again after every short pause. An error that
// says `what` has not come about when `patience` is over.
absl::Status Await(const std::string& what, const std::function<bool()>& is_so,
                   Duration patience = kPatience);

}  // namespace torpor::e2e
