#include "memory/bandwidth_curve.h"

#include <algorithm>

namespace torpor::memory {

double PeakRate(std::span<const BandwidthPoint> curve) {
  double peak = 0;
  for (const BandwidthPoint& point : curve) peak = std::max(peak, point.bytes_per_second);
  return peak;
}

std::optional<Bytes> FindElbow(std::span<const BandwidthPoint> curve) {
  const double enough = PeakRate(curve) * kElbowShare;
  for (const BandwidthPoint& point : curve) {
    if (point.bytes_per_second >= enough) return point.copy_bytes;
  }
  return std::nullopt;
}

}  // namespace torpor::memory
