#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace torpor::examples {

// Reads a JSON object whose members are numbers or (nested) arrays of numbers, such as
// {"images":[[0,1],[2,3]],"label":4}; nested arrays are flattened. Nothing if `text` is
// anything else: all that the examples take as a request.
std::optional<std::map<std::string, std::vector<double>>> ParseNumbers(std::string_view text);

// "[0.123456,...]" with `digits` after the point.
std::string FormatNumbers(const float* values, std::size_t count, int digits);

}  // namespace torpor::examples
