#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "emulator/exec/texture/texture.h"

// Texels that a coordinate selects along an axis of a level.
namespace torpor::emulator {

inline constexpr std::int64_t kOutside = -1;

// Without a call: std::floor is one unless the machine is known to round by itself.
inline std::int64_t Floor(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return whole - (static_cast<double>(whole) > value ? 1 : 0);
}

// Filters' weights have 8 bits of fraction, and so has the weight between two levels.
inline float Weight(double fraction) {
  return static_cast<float>(Floor(fraction * 256 + 0.5)) / 256;
}

// Clamps a coordinate to the range of the integer arithmetic below.
inline double Tamed(double position) {
  constexpr double kFar = 1LL << 40;
  if (position > -kFar && position < kFar) return position;
  return std::isnan(position) ? 0 : std::clamp(position, -kFar, kFar);
}

inline std::int64_t Modulo(std::int64_t value, std::int64_t count) {
  if (value < 0 && value >= -count) return value + count;  // the nearest ones need no division
  if (value >= count && value < 2 * count) return value - count;
  const std::int64_t rest = value % count;
  return rest < 0 ? rest + count : rest;
}

// Maps index `index` to a texel by the address mode; kOutside stands for the border.
inline std::int64_t Resolve(std::int64_t index, std::uint32_t extent, AddressMode mode) {
  const std::int64_t count = extent;
  if (index >= 0 && index < count) return index;
  switch (mode) {
    case AddressMode::kWrap:
      return Modulo(index, count);
    case AddressMode::kMirror: {
      const std::int64_t place = Modulo(index, 2 * count);
      return place < count ? place : 2 * count - 1 - place;
    }
    case AddressMode::kBorder:
      return kOutside;
    case AddressMode::kClamp:
      break;
  }
  return index < 0 ? 0 : count - 1;
}

// Two texels along an axis and the weight of the second.
struct Axis {
  std::array<std::int64_t, 2> texels = {};
  float weight = 0;
};

// The texel at a coordinate.
struct PointAxis {
  Axis operator()(double position, std::uint32_t extent, AddressMode mode) const {
    return {{Resolve(Floor(position), extent, mode), 0}, 0};
  }
};

// The two texels around a coordinate, for a filter.
struct PairAxis {
  Axis operator()(double position, std::uint32_t extent, AddressMode mode) const {
    const std::int64_t first = Floor(position - 0.5);
    return {{Resolve(first, extent, mode), Resolve(first + 1, extent, mode)},
            Weight(position - 0.5 - static_cast<double>(first))};
  }
};

inline AddressMode ModeOfAxis(const Texture& texture, unsigned axis) {
  const AddressMode mode = texture.address[axis];
  const bool periodic = mode == AddressMode::kWrap || mode == AddressMode::kMirror;
  return periodic && !texture.has_normalized_coordinates ? AddressMode::kClamp : mode;
}

}  // namespace torpor::emulator
