#pragma once

#include <istream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "bench/truth/measured_node.h"
#include "tests/e2e/run_times.h"

namespace torpor::truth {

// What was measured of a model, in real time.
struct MeasuredModel {
  std::string name;
  Duration resident{};
  e2e::ColdRuns host;
  e2e::ColdRuns peer;
  Bytes footprint = 0;
};

// What the simulator is told of the node.
struct NodeProfile {
  std::vector<MeasuredModel> models;
  Bytes reserved = 0;  // of each GPU's memory
  double pcie_gbps = 0;
  double nvlink_gbps = 0;  // between the GPUs over which `peer` was measured
  Duration turnover{};
  std::string account;  // whether the emulation kept up while this was measured
  bool is_valid = false;

  // An objective in proportion to what a request takes that finds nothing on a GPU.
  static Duration Objective(const MeasuredModel& model);
  // As the simulator reads it (docs/simulator.md).
  std::string ToYaml() const;
};

// Starts a node with one function of each model and measures them, one after the other.
absl::StatusOr<NodeProfile> MeasureProfile(const TruthOptions& options);

// The median time, over the requests of an event log, from the lease's revocation until its end. 0
// where there is none.
Duration MedianTurnover(std::istream& event_log);

}  // namespace torpor::truth
