#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/units.h"

// Objects read and written by texture and surface instructions.
namespace torpor::emulator {

// Storage format of a texel's channel.
enum class ChannelType : std::uint8_t {
  kUnsigned8,
  kUnsigned16,
  kUnsigned32,
  kSigned8,
  kSigned16,
  kSigned32,
  kHalf,
  kFloat,
};

constexpr std::uint32_t ChannelBytes(ChannelType type) {
  switch (type) {
    case ChannelType::kUnsigned8:
    case ChannelType::kSigned8:
      return 1;
    case ChannelType::kUnsigned16:
    case ChannelType::kSigned16:
    case ChannelType::kHalf:
      return 2;
    default:
      return 4;
  }
}

constexpr bool IsFloatingPoint(ChannelType type) {
  return type == ChannelType::kHalf || type == ChannelType::kFloat;
}

struct TexelFormat {
  ChannelType type = ChannelType::kFloat;
  std::uint32_t channels = 1;  // 1, 2 or 4

  std::uint32_t bytes() const { return ChannelBytes(type) * channels; }
};

// Texels in rows, rows in slices. A slice is a plane of a volume, a layer, or a face of a cube.
// No extent is 0.
struct TextureLevel {
  std::uint8_t* data = nullptr;
  std::uint32_t width = 1;
  std::uint32_t height = 1;
  std::uint32_t slices = 1;
  Bytes row_pitch = 0;
  Bytes slice_pitch = 0;

  std::uint8_t* Row(std::uint64_t y, std::uint64_t slice) const {
    return data + slice * slice_pitch + y * row_pitch;
  }
};

// Meaning of a coordinate outside the texture. Wrapping and mirroring need normalised coordinates;
// other coordinates are clamped instead.
enum class AddressMode : std::uint8_t { kWrap, kClamp, kMirror, kBorder };

struct Texture {
  TexelFormat format;
  std::vector<TextureLevel> levels;  // at least one, each half as large as the one before
  std::array<AddressMode, 3> address = {AddressMode::kClamp, AddressMode::kClamp,
                                        AddressMode::kClamp};
  bool filters = false;  // between texels; only where values are floating point
  bool blends_levels = false;
  bool has_normalized_coordinates = false;
  bool has_normalized_values = false;  // integers are read as fractions of their largest value
  bool is_srgb = false;                // only with normalised values of 8 bits
  // Linear memory: integer coordinates of one dimension, and zero where there is no texel.
  bool is_linear_memory = false;
  float level_bias = 0;
  float min_level = 0;
  float max_level = 0;
  std::array<float, 4> border = {};
  std::shared_ptr<const void> memory;  // keeps the texels
};

struct Surface {
  TexelFormat format;
  TextureLevel level;
  std::shared_ptr<const void> memory;  // keeps the texels
};

using TextureObject = std::variant<Texture, Surface>;

// Shape of the texture or surface that an instruction expects. Layers and faces are slices that an
// instruction chooses and never blends.
enum class TextureGeometry : std::uint8_t {
  k1d,
  k2d,
  k3d,
  kLayered1d,
  kLayered2d,
  kCube,
  kLayeredCube,
};

// How many of a texture instruction's coordinates have fractions, a layer's number not counted.
constexpr unsigned Dimensions(TextureGeometry geometry) {
  switch (geometry) {
    case TextureGeometry::k1d:
    case TextureGeometry::kLayered1d:
      return 1;
    case TextureGeometry::k2d:
    case TextureGeometry::kLayered2d:
      return 2;
    default:
      return 3;
  }
}

constexpr bool IsLayered(TextureGeometry geometry) {
  return geometry == TextureGeometry::kLayered1d || geometry == TextureGeometry::kLayered2d ||
         geometry == TextureGeometry::kLayeredCube;
}

constexpr bool IsCube(TextureGeometry geometry) {
  return geometry == TextureGeometry::kCube || geometry == TextureGeometry::kLayeredCube;
}

}  // namespace torpor::emulator
