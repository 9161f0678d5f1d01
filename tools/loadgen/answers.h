#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace torpor::loadgen {

// A request's body and what its answer must be; `expected` empty: any answer is right.
struct Exchange {
  std::string body;
  std::string expected;  // JSON
  double tolerance = 0;
};

// Reads JSON lines {"request": ..., "expected": ..., "tolerance": t}. A request that is a JSON
// string is sent as that text, anything else as its JSON.
absl::StatusOr<std::vector<Exchange>> ReadExchanges(const std::string& path);
absl::StatusOr<Exchange> ParseExchange(std::string_view line);

// Ok if `answer` is JSON that holds all that is expected: the same strings, truth values and
// whole numbers, and other numbers within tolerance (absolute below 1, relative above). Members
// that are not expected are allowed. The error says where the first difference is.
absl::Status CheckAnswer(const Exchange& exchange, std::string_view answer);

}  // namespace torpor::loadgen
