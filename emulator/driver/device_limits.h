#pragma once

#include "base/units.h"

// What every emulated GPU can do: attributes of the device, and what launches and textures are
// checked against.
namespace torpor::emulator {

inline constexpr int kMaxBlocksPerMultiprocessor = 24;
inline constexpr int kMaxThreadsPerMultiprocessor = 1536;
inline constexpr int kRegistersPerMultiprocessor = 65536;  // and per block
inline constexpr Bytes kSharedPerMultiprocessor = 100 * kKiB;
inline constexpr Bytes kSharedReservedPerBlock = kKiB;
// Static and dynamic together, until cuFuncSetAttribute allows more,
inline constexpr Bytes kSharedPerBlock = 48 * kKiB;
// which is this at most.
inline constexpr Bytes kSharedPerBlockOptIn = 99 * kKiB;

inline constexpr Bytes kTextureAlignment = 512;
inline constexpr Bytes kTexturePitchAlignment = 32;

}  // namespace torpor::emulator
