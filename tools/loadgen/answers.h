#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace torpor::loadgen {

// A request's body and the expected answer. Any answer is right if `expected` is empty.
struct Exchange {
  std::string body;
  std::string expected;  // JSON
  double tolerance = 0;  // of numbers; 0 or more
};

// Reads a file of JSON lines {"request": ..., "expected": ..., "tolerance": t}. A JSON string is
// sent as its text, any other request as JSON. Returns NotFound for a missing file and
// InvalidArgument, with the line's number, for a malformed line.
absl::StatusOr<std::vector<Exchange>> ReadExchanges(const std::string& path);

// Parses a line of such a file.
absl::StatusOr<Exchange> ParseExchange(std::string_view line);

// Returns OK if the JSON text `answer` contains the expected value: equal strings, truth values and
// whole numbers, and other numbers within tolerance (absolute below 1, relative above). Additional
// members are allowed. The error names the place of the first difference.
absl::Status CheckAnswer(const Exchange& exchange, std::string_view answer);

}  // namespace torpor::loadgen
