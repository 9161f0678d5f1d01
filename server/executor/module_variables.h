#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace torpor::executor {

// The names of a module's variables, where nothing registers them: the driver cannot list them.
// `image` may hold anything; what cannot be read has none. A name may be there more than once, and
// the driver may know fewer. Left out are variables whose first value is an address: on another
// GPU it would be another.
std::vector<std::string> VariablesOf(std::span<const std::uint8_t> image);

// The same of PTX text.
void AppendPtxVariables(std::string_view text, std::vector<std::string>& names);

}  // namespace torpor::executor
