#pragma once

#include <cstdint>
#include <vector>

#include "tools/sim/figures/figure.h"
#include "tools/sim/outcome.h"

namespace torpor::sim {

// Of all functions together: ran, compliant, ratio, attainment (share of the requests in time),
// requests, late, refused, unserved, the percentiles of the latencies of those served, where images
// came from, the GPUs' load, and the same for each model.
Json MeasuresOf(const Outcome& outcome, const Scenario& scenario);

// Percentiles of the latencies of the requests served on each GPU of the first node.
Json GpuMeasuresOf(const Outcome& outcome);

// What a figure simulates most: the node and the models of the options, with the paper's
// objectives.
Scenario BaseScenario(const FigureOptions& options, const NodeModel& node,
                      const std::string& system, workload::ArrivalProcess arrivals,
                      std::uint64_t seed);

// The options' node, or else the shipped one of that name.
NodeModel NodeOf(const FigureOptions& options, const std::string& name);

// The options' lists, or else these.
std::vector<std::string> SystemsOf(const FigureOptions& options,
                                   const std::vector<std::string>& own);
std::vector<std::size_t> FunctionsOf(const FigureOptions& options,
                                     const std::vector<std::size_t>& own);
std::vector<double> RateFactorsOf(const FigureOptions& options, const std::vector<double>& own);
// Both processes of the issue, or the options'.
std::vector<workload::ArrivalProcess> ArrivalsOf(const FigureOptions& options);

// Functions of one model.
std::vector<FunctionSpec> FunctionsOfModel(const Profiles& profiles, std::string_view model,
                                           std::size_t count);

// The model of that name; the profiles must have it (the figures need the paper's models).
std::size_t ModelNamed(const Profiles& profiles, std::string_view name);

Json Labels(const std::string& system, std::size_t functions, workload::ArrivalProcess arrivals);

// For findings: "FUNCTIONS functions, ARRIVALS: a number that is found in the rows".
std::string Number(std::optional<double> number, int decimals);

// The first row with these labels.
const Json* FindRow(const std::vector<Json>& rows, const Json& labels);
// Its measure; nothing where there is no such row.
std::optional<double> MeasureOf(const std::vector<Json>& rows, const Json& labels,
                                const std::string& key);

}  // namespace torpor::sim
