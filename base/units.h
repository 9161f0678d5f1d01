#pragma once

#include <cstdint>

namespace torpor {

// A number of bytes. Plain arithmetic type: sizes cross too many C interfaces for a wrapper.
using Bytes = std::uint64_t;

inline constexpr Bytes kKiB = Bytes{1} << 10;
inline constexpr Bytes kMiB = Bytes{1} << 20;
inline constexpr Bytes kGiB = Bytes{1} << 30;

// Rounds up to a multiple of `unit` (> 0). The result must fit 64 bits.
constexpr Bytes RoundUp(Bytes value, Bytes unit) { return (value + unit - 1) / unit * unit; }
constexpr Bytes RoundDown(Bytes value, Bytes unit) { return value / unit * unit; }

}  // namespace torpor
