#pragma once

#include <cstdint>

#include "emulator/exec/interface/warp_context.h"
#include "emulator/exec/texture/texture_instruction.h"

namespace torpor::emulator {

// Implement RuntimeCalls::texture, surface and texture_query. An unknown handle ends the block with
// kIllegalAddress. Call on the thread that runs the warp, during a TextureTable::Use.
void AccessTexture(WarpContext* context, std::uint32_t mask, TextureLanes* lanes,
                   std::uint64_t instruction);
void AccessSurface(WarpContext* context, std::uint32_t mask, TextureLanes* lanes,
                   std::uint64_t instruction);
void QueryTexture(WarpContext* context, std::uint32_t mask, TextureLanes* lanes,
                  std::uint64_t query);

}  // namespace torpor::emulator
