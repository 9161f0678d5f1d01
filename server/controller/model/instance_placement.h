#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "scheduler/node_state.h"
#include "server/broker/swap_source.h"

namespace torpor::server {

// How an instance came to the GPU of its present or last lease. A plain record for explanations.
struct InstancePlacement {
  struct Neighbour {
    GpuIndex gpu;
    std::string function;
  };

  TimePoint since{};       // the scheduler's decision
  scheduler::Wait wait{};  // before the decision
  // When there was room and the image was sent for; nullopt if the image was resident.
  std::optional<TimePoint> swap_in{};
  SwapSource source = SwapSource::kResident;
  std::optional<GpuIndex> peer{};  // the source GPU chosen by the scheduler, if any
  // GPUs behind the same PCIe switch whose images came from the host at the time of the decision.
  std::vector<Neighbour> loading_nearby{};
  std::vector<std::string> evicted{};  // functions, to make room
};

}  // namespace torpor::server
