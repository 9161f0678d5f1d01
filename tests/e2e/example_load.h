#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/example_fleet.h"

namespace torpor::e2e {

// Poisson arrivals.
struct ExampleLoad {
  std::vector<double> rates_per_s{};   // of each function
  std::vector<Duration> objectives{};  // of each function, from the intended time
  Duration length{};
  std::uint64_t seed = 1;
};

// Writes torpor-loadgen's workload file into the node's folder; its path.
std::string WriteWorkload(const ExampleFleet& fleet, const ExampleLoad& load,
                          const std::string& name);

struct LoadgenRun {  // NOLINT(bugprone-exception-escape): a JSON object checks itself
  int exit_status = 0;
  nlohmann::json report;
  std::string messages;  // stderr
};

// Runs build/bin/torpor-loadgen with a workload that lasts `length`. A failure of the program
// itself, which writes no report, is in `messages`.
LoadgenRun RunLoadgen(const std::string& folder, const std::string& workload, Duration length);

}  // namespace torpor::e2e
