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

// Choice of a node for each request.
enum class Routing {
  kByFunction,        // each function on one node, equally many on each
  kLeastOutstanding,  // every function on all nodes; the node with the fewest requests
};

// Input of a simulation. Pointers must outlive the simulation.
struct Scenario {
  const Profiles* profiles = nullptr;
  const NodeModel* node = nullptr;  // every node is alike
  std::size_t nodes = 1;
  Routing routing = Routing::kByFunction;
  System system;
  std::vector<FunctionSpec> functions;
  workload::ArrivalModel arrivals;
  workload::MinuteRates rates = workload::ConstantRates({});  // by function
  Duration length{};           // of the load; the rates repeat if shorter
  std::uint64_t seed = 1;      // of arrivals and of policies that draw at random
  bool keeps_replicas = true;  // a peer swap leaves the source's copy in place
};

// Simulates the load, single-threaded. Unless the system starts cold, each function first gets a
// request that does not count. After the load, waiting requests are served for at most a minute.
// The same scenario gives the same outcome on every machine.
Outcome Simulate(const Scenario& scenario);

// Functions with the models in turn: function i has model i modulo the number of models.
std::vector<FunctionSpec> FunctionsInTurn(const Profiles& profiles,
                                          const std::vector<std::size_t>& models,
                                          std::size_t count);

}  // namespace torpor::sim
