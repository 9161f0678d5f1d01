#pragma once

#include <string>
#include <string_view>

namespace torpor {

// Formats the 16 bytes of a GPU's UUID like nvidia-smi; returns "" for any other number of bytes.
std::string FormatUuid(std::string_view bytes);

}  // namespace torpor
