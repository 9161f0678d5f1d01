#pragma once

#include <cstdint>

#include "emulator/exec/interface/warp_context.h"
#include "emulator/exec/texture/surface_access.h"
#include "emulator/exec/texture/texture.h"
#include "emulator/exec/texture/texture_sampler.h"

// How generated code passes texture and surface instructions to the runtime.
namespace torpor::emulator {

inline constexpr unsigned kTextureInputs = 10;
inline constexpr unsigned kTexelComponents = 4;

// Operands and results of an instruction, by lane.
struct TextureLanes {
  std::uint64_t handles[kWarpLanes];
  // The layer if there is one, the coordinates, then the level or both gradients.
  std::uint32_t inputs[kTextureInputs][kWarpLanes];
  std::uint64_t components[kTexelComponents][kWarpLanes];  // loaded, or to be stored
};

// Generated code passes the following records as a 64-bit number.

struct TextureInstruction {
  TextureGeometry geometry = TextureGeometry::k2d;
  LevelChoice choice = LevelChoice::kBase;
  bool is_integer = false;
  bool gathers = false;
  std::uint8_t component = 0;  // that is gathered
  std::uint8_t reserved[3] = {};
};

enum class SurfaceAction : std::uint8_t {
  kLoad,
  kStore,
  kStoreFormatted,  // components are converted to the surface's format; offsets are in texels
  kAdd,
  kMin,
  kMax,
  kAnd,
  kOr,
};

struct SurfaceInstruction {
  TextureGeometry geometry = TextureGeometry::k2d;
  SurfaceBounds bounds = SurfaceBounds::kTrap;
  SurfaceAction action = SurfaceAction::kLoad;
  std::uint8_t element_bytes = 4;
  std::uint8_t count = 1;
  bool is_signed = false;      // of kMin and kMax
  bool counts_texels = false;  // the first coordinate, instead of bytes
  std::uint8_t reserved = 0;
};

enum class TextureQuery : std::uint64_t {
  kWidth,
  kHeight,
  kDepth,
  kArraySize,
  kLevels,
  kNormalizedCoordinates,
};

static_assert(sizeof(TextureInstruction) == sizeof(std::uint64_t));
static_assert(sizeof(SurfaceInstruction) == sizeof(std::uint64_t));

}  // namespace torpor::emulator
