#pragma once

#include "tools/sim/simulation.h"

namespace torpor::sim {

// Upper bound of compliant functions under any scheduler, even with all requests known ahead: the
// least number that GPU time, GPU memory and host links allow in the busiest stretches of the load.
// docs/simulator.md lists the relaxations. Needs a scenario with one node; ignores the system.
double CompliantBound(const Scenario& scenario);

}  // namespace torpor::sim
