#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace torpor::sim {

// Transfers from the host through one PCIe switch. Transfers to one GPU share the GPU's link, and
// all share the switch's. Shares are max-min fair and computed anew whenever a transfer begins or
// ends.
class SimulatedSwitch {
 public:
  using TransferId = std::uint64_t;
  struct End {
    TransferId transfer = 0;
    TimePoint at;
  };

  // Bandwidths of the GPUs' links and of the switch's link, in bytes a second (> 0).
  SimulatedSwitch(std::vector<double> gpu_links, double link);

  // `now` never goes back. `gpu` is an index of `gpu_links`, `bytes` above 0.
  void Begin(TransferId transfer, std::size_t gpu, Bytes bytes, TimePoint now);
  // Ends the transfer, complete or not.
  void Remove(TransferId transfer, TimePoint now);

  // The transfer that ends first if no other begins; the oldest among equals.
  std::optional<End> NextEnd() const;

 private:
  struct Transfer {
    TransferId id = 0;
    std::size_t gpu = 0;
    double bytes_left = 0;
    double bytes_per_s = 0;
  };

  // Moves every transfer on to `now` at the present shares.
  void AdvanceTo(TimePoint now);
  // Computes the shares anew. To be called after every change of the transfers.
  void Share();

  const std::vector<double> gpu_links_;
  const double link_;
  std::vector<Transfer> transfers_;  // oldest first
  std::vector<std::size_t> on_gpu_;  // transfers by GPU
  TimePoint now_{};
};

}  // namespace torpor::sim
