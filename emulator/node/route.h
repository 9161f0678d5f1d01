#pragma once

#include <array>
#include <optional>

#include "base/clock.h"
#include "base/units.h"
#include "emulator/node/node_state.h"
#include "emulator/node/topology.h"

namespace torpor::emulator {

// The links that a copy crosses.
class Route {
 public:
  // A link of so many bytes a real second. At most four.
  void Add(Timeline& link, double bytes_per_second) { hops_[count_++] = {&link, bytes_per_second}; }

  // No copy is faster than this, however many links are free.
  void Limit(double bytes_per_second) { max_bytes_per_second_ = bytes_per_second; }
  // Passes before a copy's first byte, while the links are others'.
  void Delay(Duration delay) { delay_ = delay; }
  Duration delay() const { return delay_; }

  // Whether there is a link; what crosses none takes as long as it takes.
  bool paced() const { return count_ != 0; }

  // Reserves all links for `size` bytes that are there at `ready`; gives when the last has them.
  // What shares a link shares it fairly if everybody reserves small pieces, each when the one
  // before it has passed.
  TimePoint Reserve(TimePoint ready, Bytes size) const;

 private:
  struct Hop {
    Timeline* link = nullptr;
    double bytes_per_second = 0;
  };

  std::array<Hop, 4> hops_;
  std::size_t count_ = 0;
  double max_bytes_per_second_ = 0;  // 0: any
  Duration delay_{};
};

// How a copy's end on the host lies: what is pageable the driver copies by way of memory of its
// own.
enum class HostMemory { kPinned, kPageable };

// The way from the GPU at one place to that at another; no place is the host. GPUs with NVLinks
// between them use these, others PCIe: their own links and, unless both are behind one switch,
// those of their switches. `host` counts if the host is an end. `state` must outlive the route.
Route RouteBetween(const Topology& topology, NodeState& state, std::optional<unsigned> from,
                   std::optional<unsigned> to, HostMemory host = HostMemory::kPinned);

}  // namespace torpor::emulator
