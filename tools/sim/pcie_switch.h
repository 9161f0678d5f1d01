#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace torpor::sim {

// Transfers from the host through one PCIe switch: those of a GPU share its link, those of all GPUs
// the switch's. Every transfer gets a fair share, and what one cannot use goes to the others
// (max-min), afresh whenever one begins or ends.
class PcieSwitch {
 public:
  using TransferId = std::uint64_t;
  struct End {
    TransferId transfer = 0;
    TimePoint at;
  };

  // Links of the GPUs behind it, and its own, in bytes a second (> 0).
  PcieSwitch(std::vector<double> gpu_links, double link);

  // `now` never goes back. `gpu` is an index of `gpu_links`, `bytes` above 0.
  void Begin(TransferId transfer, std::size_t gpu, Bytes bytes, TimePoint now);
  // Ends it, whether or not all has come.
  void Remove(TransferId transfer, TimePoint now);

  // Which ends first if nothing changes before; of those that end together the oldest.
  std::optional<End> NextEnd() const;

 private:
  struct Transfer {
    TransferId id = 0;
    std::size_t gpu = 0;
    double bytes_left = 0;
    double bytes_per_s = 0;
  };

  void AdvanceTo(TimePoint now);
  void Share();

  const std::vector<double> gpu_links_;
  const double link_;
  std::vector<Transfer> transfers_;  // oldest first
  std::vector<std::size_t> on_gpu_;  // number of transfers of each
  TimePoint now_{};
};

}  // namespace torpor::sim
