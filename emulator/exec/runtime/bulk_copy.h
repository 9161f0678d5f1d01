#pragma once

#include <cstdint>

#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// RuntimeCalls::bulk_copy.
void BulkCopy(WarpContext* context, std::uint32_t mask, const std::uint64_t* to,
              const std::uint64_t* from, const std::uint64_t* bytes);

}  // namespace torpor::emulator
