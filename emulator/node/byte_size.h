#pragma once

#include <string_view>

#include "base/units.h"
#include "emulator/node/node_result.h"

namespace torpor::emulator {

// "512MiB", "24 GiB", "1e9" or "80GB" as bytes.
NodeResult<Bytes> ParseBytes(std::string_view text);

}  // namespace torpor::emulator
