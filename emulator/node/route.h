#pragma once

#include <array>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "emulator/node/fault_plan.h"
#include "emulator/node/node_state.h"
#include "emulator/node/topology.h"

namespace torpor::emulator {

// The links that a copy crosses. Not thread-safe; the timelines may be shared.
class Route {
 public:
  // Adds a link with a rate in bytes per real second. At most four links.
  void Add(Timeline& link, double bytes_per_second, LinkWindows windows = {}) {
    hops_[count_++] = {&link, bytes_per_second, std::move(windows)};
  }

  // Bounds the rate of a copy, however many links are free.
  void Limit(double bytes_per_second) { max_bytes_per_second_ = bytes_per_second; }
  // Sets the time before a copy's first byte; other copies may use the links meanwhile.
  void Delay(Duration delay) { delay_ = delay; }
  Duration delay() const { return delay_; }

  // Whether there is a link. A copy without links takes its real time.
  bool paced() const { return count_ != 0; }

  // Reserves all links for `size` bytes that are ready at `ready`, and returns when the last link
  // is done. Copies share a link fairly if each reserves small pieces, one after the other.
  TimePoint Reserve(TimePoint ready, Bytes size) const;

 private:
  struct Hop {
    Timeline* link = nullptr;
    double bytes_per_second = 0;
    LinkWindows windows;
  };

  std::array<Hop, 4> hops_;
  std::size_t count_ = 0;
  double max_bytes_per_second_ = 0;  // 0: any
  Duration delay_{};
};

// Kind of a copy's host memory. The driver copies pageable memory through a buffer of its own.
enum class HostMemory { kPinned, kPageable };

// Finds the path from the GPU at place `from` to the GPU at place `to`; nullopt means the host.
// GPUs with NVLinks between them use NVLinks, others PCIe: their own links and, unless both are
// behind one switch, the switches' links. `host` matters if the host is an end. `state` must
// outlive the route.
Route RouteBetween(const Topology& topology, SharedNodeState& state, std::optional<unsigned> from,
                   std::optional<unsigned> to, HostMemory host = HostMemory::kPinned);

}  // namespace torpor::emulator
