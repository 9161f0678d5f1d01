#pragma once

#include <optional>
#include <span>

#include "base/units.h"

namespace torpor::memory {

// The rate of a link when copies of this size follow each other on it.
struct BandwidthPoint {
  Bytes copy_bytes = 0;
  double bytes_per_second = 0;

  friend bool operator==(const BandwidthPoint&, const BandwidthPoint&) = default;
};

// Where the curve (ascending sizes) bends: the smallest size whose copies reach kElbowShare of the
// best rate. Larger groups could shorten a swap-in by no more than the rest, and each makes work
// wait for more bytes than it uses. Nothing for an empty curve.
inline constexpr double kElbowShare = 0.95;
std::optional<Bytes> FindElbow(std::span<const BandwidthPoint> curve);

// The best rate, in bytes a second; 0 for an empty curve.
double PeakRate(std::span<const BandwidthPoint> curve);

}  // namespace torpor::memory
