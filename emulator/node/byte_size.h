#pragma once

#include <string_view>

#include "base/units.h"
#include "emulator/node/node_result.h"

namespace torpor::emulator {

// Parses "512MiB", "24 GiB", "1e9" or "80GB". Fails with kInvalid for other texts and sizes beyond
// 64 bits.
NodeResult<Bytes> ParseBytes(std::string_view text);

}  // namespace torpor::emulator
