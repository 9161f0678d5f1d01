#include "tests/e2e/example_load.h"

#include <fmt/format.h>

#include <chrono>
#include <fstream>

#include "tests/e2e/child_process.h"

namespace torpor::e2e {
namespace {

using std::chrono::seconds;

constexpr seconds kTimeout(60);  // of a request

constexpr int kKilled = 137;

}  // namespace

std::string WriteWorkload(const ExampleFleet& fleet, const ExampleLoad& load,
                          const std::string& name) {
  std::string yaml = fmt::format(
      "version: v1\ntarget: {}\narrivals: poisson\nseed: {}\nduration_s: {}\ntimeout_s: {}\n"
      "functions:\n",
      fleet.node().http_address(), load.seed, ToSeconds(load.length), kTimeout.count());
  for (std::size_t i = 0; i < fleet.functions().size(); ++i) {
    const ExampleFleet::Function& function = fleet.functions()[i];
    yaml += fmt::format(
        "  - {{name: {}, path: {}, rate_per_s: {}, objective_ms: {}, percentile: 98, "
        "expected: {}}}\n",
        function.name, function.path, load.rates_per_s[i], ToMilliseconds(load.objectives[i]),
        function.expected_file);
  }
  return fleet.node().folder().Write(name, yaml);
}

LoadgenRun RunLoadgen(const std::string& folder, const std::string& workload, Duration length) {
  const std::string report = workload + ".report.json";
  ChildProcess loadgen(
      {std::string(TORPOR_BIN_DIR) + "/torpor-loadgen", workload, "--json", report}, {folder, {}});
  LoadgenRun run;
  run.exit_status = loadgen.Wait(length + 2 * kTimeout).value_or(kKilled);
  run.messages = loadgen.Stderr();
  std::ifstream file(report);
  run.report = nlohmann::json::parse(file, nullptr, false);
  return run;
}

}  // namespace torpor::e2e
