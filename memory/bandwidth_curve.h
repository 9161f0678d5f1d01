#pragma once

#include <optional>
#include <span>

#include "base/units.h"

namespace torpor::memory {

// The measured rate of a link that carries copies of `copy_bytes` one after another.
struct BandwidthPoint {
  Bytes copy_bytes = 0;
  double bytes_per_second = 0;

  friend bool operator==(const BandwidthPoint&, const BandwidthPoint&) = default;
};

// Returns the smallest size whose copies reach kElbowShare of the best rate, or nullopt for an
// empty curve; sizes ascend. Larger groups could shorten a swap-in by no more than the remaining
// share, and each would make work wait for more bytes than the work uses.
inline constexpr double kElbowShare = 0.95;
std::optional<Bytes> FindElbow(std::span<const BandwidthPoint> curve);

// Returns the best rate in bytes per second; 0 for an empty curve.
double PeakRate(std::span<const BandwidthPoint> curve);

}  // namespace torpor::memory
