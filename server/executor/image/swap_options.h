#pragma once

#include "base/units.h"
#include "server/settings/device_modes.h"

namespace torpor::executor {

using server::kMinGroupBytes;
using server::SwapPipeline;
using server::SwapWait;

// Settings of swap-ins, as configured, except that the group size is chosen.
struct SwapOptions {
  bool pinned = true;  // images are registered with the driver for copies
  SwapPipeline pipeline = SwapPipeline::kGroup;
  Bytes group_bytes = 2 * kMiB;
  SwapWait wait = SwapWait::kAllocation;
  // The host image of the last checkpoint outlives this process, whenever it dies. Off: in the soak
  // test some answers are wrong with it (docs/decisions/0035).
  bool keeps_checkpoints = false;
};

}  // namespace torpor::executor
