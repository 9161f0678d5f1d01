#pragma once

#include <array>
#include <cstdint>

#include "emulator/exec/texture/texel.h"
#include "emulator/exec/texture/texture.h"

namespace torpor::emulator {

enum class LevelChoice : std::uint8_t {
  kBase,       // level 0
  kLevel,      // `level` of the request
  kGradients,  // as the request's gradients say
};

// A texture instruction of a lane.
struct SampleRequest {
  TextureGeometry geometry = TextureGeometry::k2d;
  LevelChoice choice = LevelChoice::kBase;
  bool is_integer = false;  // the coordinates are texel numbers
  std::int32_t layer = 0;
  std::array<float, 3> coordinates = {};
  std::array<std::int32_t, 3> texel = {};  // the coordinates if `is_integer`
  float level = 0;
  std::array<float, 3> dx = {};  // how the coordinates change from pixel to pixel
  std::array<float, 3> dy = {};
};

// The texture's value there, as the appendix "Texture Fetching" of the CUDA C++ Programming Guide
// defines it: filter weights are fixed-point numbers with 8 bits of fraction. Any coordinates, NaN
// too, are answered. Anisotropy is not modelled, and faces of a cube are filtered each by itself.
Texel Sample(const Texture& texture, const SampleRequest& request);

// Returns component `component` of the four texels of a filter, from the lower left
// counter-clockwise: (i, j+1), (i+1, j+1), (i+1, j), (i, j).
Texel Gather(const Texture& texture, const SampleRequest& request, unsigned component);

}  // namespace torpor::emulator
