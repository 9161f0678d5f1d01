#pragma once

#include <cstddef>
#include <string_view>

#include "tools/sim/figures/figure.h"
#include "tools/sim/outcome.h"

namespace torpor::sim {

// Measures of all functions together: ran, compliant, ratio, attainment (share of the requests in
// time), requests, late, refused, unserved, percentiles of served requests' latencies in
// milliseconds, shares of image sources, the GPUs' load; under "models", the same for each model.
Json MeasuresOf(const Outcome& outcome, const Scenario& scenario);
// Simulates the scenario and measures the outcome.
Json SimulatedMeasures(const Scenario& scenario);

// p98 latencies in milliseconds of the first node's GPUs, the worst, and the GPUs' loads.
Json GpuMeasuresOf(const Outcome& outcome);

// Variance of the loads of a node's GPUs, each divided by the highest.
double LoadVarianceOf(const Outcome& outcome, std::size_t node);

// The column of a measure that several figures show, by key.
Column Shown(std::string_view key);

}  // namespace torpor::sim
