#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/units.h"
#include "emulator/node/topology.h"
#include "tests/e2e/example_fleet.h"
#include "tools/sim/node_model.h"

// The node on which daemon and simulator are compared: the emulated one of the paper, with GPUs as
// small as the examples' models need, and so slow that this computer's own work does not count.
namespace torpor::truth {

struct TruthOptions {
  double time_scale = 100;
  Duration length{std::chrono::minutes(5)};  // of each load
  std::uint64_t seed = 1;
  std::vector<double> loads{0.4, 0.8};
  std::string policy = "torpor";
};

inline constexpr std::size_t kFunctions = 24;

// Four encoders, from one that a link brings faster than it runs to one that takes twice as long,
// and digits, which are next to nothing.
std::vector<e2e::ExampleModel> TruthModels();

// The topology file's text.
std::string TruthTopology(const TruthOptions& options);

// As the simulator sees that node, in real time: with its links as slow as they are.
absl::StatusOr<emulator::Topology> SlowTopology(const TruthOptions& options);

// Lines of torpord's configuration, and of each function's.
std::string TruthSettings(const TruthOptions& options);
inline constexpr const char* kTruthFunctionSetting = "stateless: true";

}  // namespace torpor::truth
