#pragma once

#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "server/config/config.h"
#include "server/supervisor/child_process.h"

namespace torpor::server {

// Finds addresses that the driver reserves on every GPU, and stores them in `config`. With
// `address_mode: map`, `probe` starts the executor's program, which tries them in a process of its
// own, so that all executors get the same. If the driver refuses all, the node changes to
// `translate`, and the configuration says why (addresses.fallback). Fails if there are no addresses
// at all, or no driver.
absl::Status SettleAddresses(ProcessCommand probe, const std::vector<GpuIndex>& gpus,
                             Config& config);

}  // namespace torpor::server
