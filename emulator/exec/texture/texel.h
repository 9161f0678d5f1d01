#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "emulator/exec/texture/texture.h"

namespace torpor::emulator {

// The four components of a texel as an instruction's 32-bit registers get them: numbers of type
// f32 where the texture's values are floating point, else integers extended to 32 bits. Components
// that the format lacks are 0, the fourth 1.
using Texel = std::array<std::uint32_t, 4>;
using FloatTexel = std::array<float, 4>;

// Whether texels of `texture` are read as floating point.
inline bool ReadsFloats(const Texture& texture) {
  return texture.has_normalized_values || IsFloatingPoint(texture.format.type);
}

// The texel at `bytes` as it is read unfiltered.
Texel ReadTexel(const Texture& texture, const std::uint8_t* bytes);
// The same where ReadsFloats.
FloatTexel ConvertTexel(const Texture& texture, const std::uint8_t* bytes);
inline FloatTexel ReadFloatTexel(const Texture& texture, const std::uint8_t* bytes) {
  if (texture.format.type != ChannelType::kFloat) return ConvertTexel(texture, bytes);
  FloatTexel texel = {0, 0, 0, 1};
  switch (texture.format.channels) {  // copies of known sizes cost no call
    case 1:
      std::memcpy(texel.data(), bytes, sizeof(float));
      break;
    case 2:
      std::memcpy(texel.data(), bytes, 2 * sizeof(float));
      break;
    default:
      std::memcpy(texel.data(), bytes, 4 * sizeof(float));
  }
  return texel;
}
Texel BorderTexel(const Texture& texture);

// Stores components as `format` has them: f32 where it is floating point, else integers, limited to
// what the channel holds.
void WriteTexel(const TexelFormat& format, const Texel& texel, std::uint8_t* bytes);

}  // namespace torpor::emulator
