#pragma once

#include "tools/sim/simulation.h"

namespace torpor::sim {

// No scheduler of the scenario's node, not even one that knows all requests ahead, has more
// compliant functions than this: the least of what the GPUs' time, their memory and the links to
// the host allow in the busiest stretches of the load. docs/simulator.md says what is relaxed. The
// scenario's system does not matter, and there must be one node.
double CompliantBound(const Scenario& scenario);

}  // namespace torpor::sim
