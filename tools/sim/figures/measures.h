#pragma once

#include <cstddef>
#include <string_view>

#include "tools/sim/figures/figure.h"
#include "tools/sim/outcome.h"

namespace torpor::sim {

// Of all functions together: ran, compliant, ratio, attainment (share of the requests in time),
// requests, late, refused, unserved, the percentiles of the latencies of those served, where images
// came from, the GPUs' load, and the same for each model.
Json MeasuresOf(const Outcome& outcome, const Scenario& scenario);
Json SimulatedMeasures(const Scenario& scenario);

// Percentiles of the latencies of the requests served on each GPU of the first node.
Json GpuMeasuresOf(const Outcome& outcome);

// Of the loads of a node's GPUs over the highest of them.
double LoadVarianceOf(const Outcome& outcome, std::size_t node);

// The column of a measure that several figures show, by key.
Column Shown(std::string_view key);

}  // namespace torpor::sim
