#pragma once

#include <array>
#include <cstdint>

#include "emulator/exec/texture/texture.h"

namespace torpor::emulator {

// Effect of an access outside the surface.
enum class SurfaceBounds : std::uint8_t {
  kTrap,   // an error
  kClamp,  // it goes to the nearest place inside
  kZero,   // loads give 0, stores are dropped
};

// A surface instruction of a lane.
struct SurfaceRequest {
  TextureGeometry geometry = TextureGeometry::k2d;
  SurfaceBounds bounds = SurfaceBounds::kTrap;
  std::int32_t layer = 0;
  std::array<std::int32_t, 3> at = {};  // the first in bytes
  std::uint32_t bytes = 4;              // of the access; a power of two
};

struct SurfacePlace {
  std::uint8_t* bytes = nullptr;  // null: nowhere
  bool is_error = false;
};

// Rounds offsets down to a multiple of the access's size.
SurfacePlace Locate(const Surface& surface, const SurfaceRequest& request);

}  // namespace torpor::emulator
