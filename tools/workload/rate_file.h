#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/workload/rates.h"

namespace torpor::workload {

// Parses a rate file: CSV in the format of the paper's artifact, with a header
// minute_0,minute_1,... and a row for each function with the requests in each minute (0 or more,
// with or without decimals). Returns InvalidArgument with line, column (of the text, from 1) and
// minute for a malformed file.
absl::StatusOr<MinuteRates> ParseRates(std::string_view csv);

// Parses the file at `path`. Errors begin with the path.
absl::StatusOr<MinuteRates> ReadRates(const std::string& path);

// Formats `rates` as a rate file; ParseRates returns the same rates.
std::string FormatRates(const MinuteRates& rates);

}  // namespace torpor::workload
