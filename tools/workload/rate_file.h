#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/workload/rates.h"

namespace torpor::workload {

// A rate file is CSV as the paper's artifact has it: a header minute_0,minute_1,... and a row a
// function, its requests in each minute (numbers from 0 on, with or without decimals). An error
// says line, column (of the text, from 1) and minute.
absl::StatusOr<MinuteRates> ParseRates(std::string_view csv);

// The same of a file, whose name stands before every error.
absl::StatusOr<MinuteRates> ReadRates(const std::string& path);

// What ParseRates reads back to the same rates, a row a function.
std::string FormatRates(const MinuteRates& rates);

}  // namespace torpor::workload
