#pragma once

#include "absl/status/statusor.h"
#include "bench/truth/findings.h"
#include "bench/truth/measured_node.h"
#include "bench/truth/node_profile.h"

namespace torpor::truth {

// A load on a node of its own, sent by torpor-loadgen, and the same requests, simulated. `load`:
// the share of the time in which simulated GPUs are busy with as many requests a second.
absl::StatusOr<Comparison> CompareLoad(const TruthOptions& options, const NodeProfile& profile,
                                       double load);

}  // namespace torpor::truth
