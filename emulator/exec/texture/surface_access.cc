#include "emulator/exec/texture/surface_access.h"

#include <algorithm>

namespace torpor::emulator {

// The first coordinate is in bytes, the others in rows and slices.
SurfacePlace Locate(const Surface& surface, const SurfaceRequest& request) {
  const TextureLevel& level = surface.level;
  const auto row_bytes = std::int64_t{level.width} * surface.format.bytes();
  const std::int64_t size = request.bytes;
  if (row_bytes < size) return {nullptr, request.bounds == SurfaceBounds::kTrap};
  const bool is_layered = IsLayered(request.geometry);
  std::array<std::int64_t, 3> at = {};
  for (unsigned i = 0; i < Dimensions(request.geometry); ++i) at[i] = request.at[i];
  if (is_layered) at[2] = request.layer;
  at[0] &= -size;
  const std::array<std::int64_t, 3> last = {row_bytes - size, std::int64_t{level.height} - 1,
                                            std::int64_t{level.slices} - 1};
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] >= 0 && at[i] <= last[i]) continue;
    if (request.bounds != SurfaceBounds::kClamp) {
      return {nullptr, request.bounds == SurfaceBounds::kTrap};
    }
    at[i] = std::clamp<std::int64_t>(at[i], 0, last[i]);
  }
  at[0] &= -size;
  return {level.Row(static_cast<std::uint64_t>(at[1]), static_cast<std::uint64_t>(at[2])) + at[0],
          false};
}

}  // namespace torpor::emulator
