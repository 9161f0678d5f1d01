#include "emulator/node/byte_size.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace torpor::emulator {

NodeResult<Bytes> ParseBytes(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 10> kUnits = {{
      {"", 1},
      {"B", 1},
      {"KiB", 0x1p10},
      {"MiB", 0x1p20},
      {"GiB", 0x1p30},
      {"TiB", 0x1p40},
      {"KB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
  }};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto* found = std::find_if(kUnits.begin(), kUnits.end(),
                                   [&](const auto& entry) { return entry.first == unit; });
  if (error != std::errc{} || found == kUnits.end() || !(number >= 0) ||
      number * found->second >= 0x1p63) {
    return Failure<NodeError>{NodeError::kInvalid, "not a number of bytes: '" + std::string(text) +
                                                       "'; write for example 512MiB"};
  }
  return static_cast<Bytes>(number * found->second);
}

}  // namespace torpor::emulator
