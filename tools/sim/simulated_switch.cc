#include "tools/sim/simulated_switch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace torpor::sim {

SimulatedSwitch::SimulatedSwitch(std::vector<double> gpu_links, double link)
    : gpu_links_(std::move(gpu_links)), link_(link), on_gpu_(gpu_links_.size(), 0) {}

void SimulatedSwitch::Begin(TransferId transfer, std::size_t gpu, Bytes bytes, TimePoint now) {
  AdvanceTo(now);
  transfers_.push_back({transfer, gpu, static_cast<double>(bytes), 0});
  ++on_gpu_[gpu];
  Share();
}

void SimulatedSwitch::Remove(TransferId transfer, TimePoint now) {
  AdvanceTo(now);
  const auto found = std::find_if(transfers_.begin(), transfers_.end(),
                                  [&](const Transfer& other) { return other.id == transfer; });
  if (found == transfers_.end()) return;
  --on_gpu_[found->gpu];
  transfers_.erase(found);
  Share();
}

std::optional<SimulatedSwitch::End> SimulatedSwitch::NextEnd() const {
  std::optional<End> next;
  for (const Transfer& transfer : transfers_) {
    // Rounded up: then nothing is left.
    const double ns = std::ceil(transfer.bytes_left / transfer.bytes_per_s * 1e9);
    const TimePoint at = now_ + Duration(static_cast<std::int64_t>(ns));
    if (!next || at < next->at) next = End{transfer.id, at};
  }
  return next;
}

// Counts what has come since the last change of shares.
void SimulatedSwitch::AdvanceTo(TimePoint now) {
  const double seconds = ToSeconds(now - now_);
  for (Transfer& transfer : transfers_) {
    transfer.bytes_left = std::max(0.0, transfer.bytes_left - transfer.bytes_per_s * seconds);
  }
  now_ = now;
}

void SimulatedSwitch::Share() {
  // Water-filling: a link below an even share of the rest keeps the demand.
  for (Transfer& transfer : transfers_) transfer.bytes_per_s = 0;
  double left = link_;
  std::size_t unserved = transfers_.size();
  while (unserved > 0) {
    const auto even = left / static_cast<double>(unserved);
    std::size_t bounded = 0;
    for (Transfer& transfer : transfers_) {
      if (transfer.bytes_per_s > 0) continue;
      const double own = gpu_links_[transfer.gpu] / static_cast<double>(on_gpu_[transfer.gpu]);
      if (own > even) continue;
      transfer.bytes_per_s = own;
      left -= own;
      ++bounded;
    }
    if (bounded == 0) {
      for (Transfer& transfer : transfers_) {
        if (transfer.bytes_per_s == 0) transfer.bytes_per_s = even;
      }
      return;
    }
    unserved -= bounded;
  }
}

}  // namespace torpor::sim
