#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "emulator/exec/texture/texture.h"

namespace torpor::emulator {

// The four components of a texel in the form of 32-bit registers: f32 if the texture's values are
// floating point, else integers extended to 32 bits. Components missing in the format are 0, a
// missing fourth component is 1.
using Texel = std::array<std::uint32_t, 4>;
using FloatTexel = std::array<float, 4>;

// Whether texels of `texture` are read as floating point.
inline bool ReadsFloats(const Texture& texture) {
  return texture.has_normalized_values || IsFloatingPoint(texture.format.type);
}

// Reads the texel at `bytes`, unfiltered.
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

// Stores components in `format`: f32 for floating-point formats, else integers clamped to the range
// of the channel.
void WriteTexel(const TexelFormat& format, const Texel& texel, std::uint8_t* bytes);

}  // namespace torpor::emulator
