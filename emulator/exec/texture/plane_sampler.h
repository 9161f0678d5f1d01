#pragma once

#include <cstdint>

#include "emulator/exec/texture/texture.h"
#include "emulator/exec/texture/texture_instruction.h"

namespace torpor::emulator {

// What Sample gives the lanes of `mask` of a texture of one plane that is read as floating point,
// at coordinates with fractions (inputs 0 and 1), several times as fast: most kernels that use
// textures spend their time here. False, and nothing done, for textures of less common kinds: of
// several levels, with a border, of halves or wide integers.
bool SamplePlane(const Texture& texture, std::uint32_t mask, TextureLanes& lanes);

}  // namespace torpor::emulator
