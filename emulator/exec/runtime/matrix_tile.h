#pragma once

#include <cstdint>

#include "emulator/exec/interface/warp_context.h"

namespace torpor::emulator {

// RuntimeCalls::load_tile and store_tile.
void LoadTile(WarpContext* context, std::uint64_t address, std::uint64_t stride,
              std::uint8_t* fragment, std::uint32_t lines, std::uint32_t line_bytes,
              std::uint32_t transposed_bytes, std::uint32_t copies);
void StoreTile(WarpContext* context, std::uint64_t address, std::uint64_t stride,
               const std::uint8_t* fragment, std::uint32_t lines, std::uint32_t line_bytes,
               std::uint32_t transposed_bytes, std::uint32_t copies);

}  // namespace torpor::emulator
