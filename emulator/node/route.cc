#include "emulator/node/route.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace torpor::emulator {
namespace {

// The time of `size` bytes at a rate.
Duration TimeOf(Bytes size, double bytes_per_second) {
  return Duration(std::llround(static_cast<double>(size) / bytes_per_second * 1e9));
}

// The windows of the links for which `is_of` holds.
template <typename IsOf>
LinkWindows WindowsOf(const Topology& topology, const SharedNodeState& state, const IsOf& is_of) {
  std::vector<RateWindow> windows;
  for (const LinkFault& fault : topology.plan.links) {
    if (is_of(fault)) windows.push_back(fault.window);
  }
  if (windows.empty()) return {};
  const TimePoint began{Duration(state.began_ns.load(std::memory_order_relaxed))};
  return {std::move(windows), began, topology.time_scale};
}

}  // namespace

// Every link is reserved at once; the slowest or busiest link determines the end.
TimePoint Route::Reserve(TimePoint ready, Bytes size) const {
  TimePoint end = ready;
  if (max_bytes_per_second_ > 0) end += TimeOf(size, max_bytes_per_second_);
  for (std::size_t i = 0; i < count_; ++i) {
    const Hop& hop = hops_[i];
    end = std::max(end, hop.link->ReserveUntil(ready, [&](TimePoint begin) {
      return hop.windows.EndOf(begin, size, hop.bytes_per_second);
    }));
  }
  return end;
}

Route RouteBetween(const Topology& topology, SharedNodeState& state, std::optional<unsigned> from,
                   std::optional<unsigned> to, HostMemory host) {
  Route route;
  if (from == to) return route;
  const double bytes_per_gb = 1e9 / topology.time_scale;
  double delay_us = 0;
  for (const std::optional<unsigned> end : {from, to}) {
    if (end) delay_us = std::max(delay_us, topology.gpus[*end].copy_us);
  }
  route.Delay(Duration(std::llround(delay_us * 1000 * topology.time_scale)));
  if (from && to) {
    if (const unsigned links = topology.nvlinks.Between(*from, *to); links != 0) {
      const auto is_of = [&](const LinkFault& fault) {
        return fault.nvlink == std::pair(*from, *to) || fault.nvlink == std::pair(*to, *from);
      };
      route.Add(state.nvlink[*from][*to], links * topology.nvlinks.gbps_per_link * bytes_per_gb,
                WindowsOf(topology, state, is_of));
      return route;
    }
  } else if (host == HostMemory::kPageable) {
    route.Limit(topology.gpus[from ? *from : *to].pageable_gbps * bytes_per_gb);
  }
  const auto switch_of = [&](std::optional<unsigned> place) {
    return place ? topology.gpus[*place].pcie_switch : std::nullopt;
  };
  const auto add_gpu = [&](unsigned place, Timeline& link) {
    if (const double gbps = topology.gpus[place].pcie_gbps; gbps > 0) {
      const auto is_of = [&](const LinkFault& fault) { return fault.gpu == place; };
      route.Add(link, gbps * bytes_per_gb, WindowsOf(topology, state, is_of));
    }
  };
  if (from) add_gpu(*from, state.gpu_up[*from]);
  const auto add_switch = [&](unsigned index, Timeline& link) {
    const auto is_of = [&](const LinkFault& fault) { return fault.pcie_switch == index; };
    route.Add(link, topology.switches[index].gbps * bytes_per_gb,
              WindowsOf(topology, state, is_of));
  };
  if (switch_of(from) != switch_of(to)) {
    if (const auto up = switch_of(from)) add_switch(*up, state.switch_up[*up]);
    if (const auto down = switch_of(to)) add_switch(*down, state.switch_down[*down]);
  }
  if (to) add_gpu(*to, state.gpu_down[*to]);
  return route;
}

}  // namespace torpor::emulator
