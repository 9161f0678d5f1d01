#pragma once

#include <cstdint>

#include "emulator/exec/texture/texture.h"
#include "emulator/exec/texture/texture_instruction.h"

namespace torpor::emulator {

// Same results as Sample for the lanes of `mask`, several times as fast, for a texture of one plane
// read as floating point at coordinates with fractions (inputs 0 and 1). Most kernels with textures
// spend their time here. Returns false, and does nothing, for less common kinds of textures:
// several levels, a border, halves or wide integers.
bool SamplePlane(const Texture& texture, std::uint32_t mask, TextureLanes& lanes);

}  // namespace torpor::emulator
