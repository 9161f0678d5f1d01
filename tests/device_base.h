#pragma once

#include <cstdint>

namespace torpor {

// Where tests place device addresses: as torpord does, or, under ThreadSanitizer, which keeps that
// range for itself, lower.
#ifdef __SANITIZE_THREAD__
inline constexpr std::uint64_t kTestDeviceBase = 0x10'0000'0000;
#else
inline constexpr std::uint64_t kTestDeviceBase = 0x2000'0000'0000;
#endif

}  // namespace torpor
