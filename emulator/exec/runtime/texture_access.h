#pragma once

#include <cstdint>

#include "emulator/exec/interface/warp_context.h"
#include "emulator/exec/texture/texture_instruction.h"

namespace torpor::emulator {

// What generated code calls; see RuntimeCalls. A number that is no texture or surface object ends
// the block with kIllegalAddress.
void AccessTexture(WarpContext* context, std::uint32_t mask, TextureLanes* lanes,
                   std::uint64_t instruction);
void AccessSurface(WarpContext* context, std::uint32_t mask, TextureLanes* lanes,
                   std::uint64_t instruction);
void QueryTexture(WarpContext* context, std::uint32_t mask, TextureLanes* lanes,
                  std::uint64_t query);

}  // namespace torpor::emulator
