#pragma once

#include <cstdint>

#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// RuntimeCalls::mbarrier.
void RunMbarrier(WarpContext* context, std::uint32_t mask, std::uint32_t operation,
                 const std::uint64_t* addresses, const std::uint64_t* arguments,
                 std::uint64_t* results);

}  // namespace torpor::emulator
