#pragma once

#include <string>
#include <string_view>

namespace torpor {

// A GPU's UUID of 16 bytes as nvidia-smi prints it; empty for any other number of bytes.
std::string FormatUuid(std::string_view bytes);

}  // namespace torpor
