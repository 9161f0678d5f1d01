#pragma once

#include <cstddef>
#include <cstdint>

namespace torpor::emulator {

inline constexpr std::size_t kSharedWindowBytes = std::size_t{256} << 10;
// From the shared memory of a block to the same byte of the next block of the cluster.
inline constexpr std::size_t kClusterStride = 2 * kSharedWindowBytes;
inline constexpr std::int64_t kMaxSharedOffset = std::int64_t{1} << 20;
inline constexpr std::size_t kParameterWindowBytes = std::size_t{64} << 10;
inline constexpr std::size_t kLocalWindowBytes = std::size_t{2} << 30;

}  // namespace torpor::emulator
