#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "tools/sim/model_profile.h"
#include "tools/sim/node_model.h"
#include "tools/sim/outcome.h"
#include "tools/sim/simulated_node.h"
#include "tools/sim/systems.h"
#include "tools/workload/arrivals.h"
#include "tools/workload/rates.h"

namespace torpor::sim {

// Which of several nodes a request goes to.
enum class Routing {
  kByFunction,        // each function is on one node, as many on each
  kLeastOutstanding,  // every function is on all nodes: the one with the fewest requests
};

// What is simulated. All that is pointed at outlives the simulation.
struct Scenario {
  const Profiles* profiles = nullptr;
  const NodeModel* node = nullptr;
  std::size_t nodes = 1;
  Routing routing = Routing::kByFunction;
  System system;
  std::vector<FunctionSpec> functions;
  workload::ArrivalModel arrivals;
  workload::MinuteRates rates = workload::ConstantRates({});  // of each function
  Duration length{};
  std::uint64_t seed = 1;
  bool keeps_replicas = true;  // of an image that another GPU gets from a GPU; else it moves
};

// Before the load each function gets one request, which does not count (unless the system starts
// cold). After it, the requests that wait still are served for a minute at most. The same scenario
// gives the same outcome, on every machine.
Outcome Simulate(const Scenario& scenario);

// Functions of the models in turn: function i has model i modulo their number.
std::vector<FunctionSpec> FunctionsInTurn(const Profiles& profiles,
                                          const std::vector<std::size_t>& models,
                                          std::size_t count);

}  // namespace torpor::sim
