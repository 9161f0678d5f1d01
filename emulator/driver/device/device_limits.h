#pragma once

#include "base/units.h"

// Limits of every emulated GPU: reported as attributes, and checked by launches and textures.
namespace torpor::emulator {

inline constexpr int kMaxBlocksPerMultiprocessor = 24;
inline constexpr int kMaxThreadsPerMultiprocessor = 1536;
inline constexpr int kRegistersPerMultiprocessor = 65536;  // and per block
inline constexpr Bytes kSharedPerMultiprocessor = 100 * kKiB;
inline constexpr Bytes kSharedReservedPerBlock = kKiB;
// Static and dynamic shared memory together, unless cuFuncSetAttribute allows more
inline constexpr Bytes kSharedPerBlock = 48 * kKiB;
// up to this limit.
inline constexpr Bytes kSharedPerBlockOptIn = 99 * kKiB;

inline constexpr Bytes kTextureAlignment = 512;
inline constexpr Bytes kTexturePitchAlignment = 32;

// Bounds of the edges of CUDA arrays and textures, in texels.
inline constexpr int kMaxTextureWidth = 131072;
inline constexpr int kMaxTextureHeight = 65536;
inline constexpr int kMaxLayerEdge = 32768;  // of layered images and of cubes
inline constexpr int kMaxVolumeEdge = 16384;
inline constexpr int kMaxLayers = 2048;
inline constexpr int kMaxCubeLayers = 2046;
inline constexpr int kMaxLinearTexels = 1 << 28;

}  // namespace torpor::emulator
