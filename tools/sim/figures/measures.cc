#include "tools/sim/figures/measures.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "base/check.h"

namespace torpor::sim {
namespace {

// Outcomes summed over functions. Latencies are kept for percentiles over all requests.
struct Sum {
  std::size_t functions = 0;
  std::size_t ran = 0;
  std::size_t compliant = 0;
  std::uint64_t requests = 0;
  std::uint64_t in_time = 0;
  std::uint64_t late = 0;
  std::uint64_t refused = 0;
  std::uint64_t unserved = 0;
  std::vector<std::uint32_t> latencies_us;
  PathCounts paths;

  void Add(const FunctionOutcome& function, double percentile) {
    ++functions;
    ran += function.ran() ? 1 : 0;
    compliant += function.Complies(percentile) ? 1 : 0;
    requests += function.arrived;
    in_time += function.in_time;
    late += function.late;
    refused += function.refused;
    unserved += function.unserved;
    latencies_us.insert(latencies_us.end(), function.latencies_us.begin(),
                        function.latencies_us.end());
    paths.Add(function.paths);
  }
};

// part / all; 0 of nothing.
double Share(std::uint64_t part, std::uint64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

// Returns a percentile (0 to 1) in milliseconds; 0 if empty. Reorders.
double Milliseconds(std::vector<std::uint32_t>& latencies_us, double percentile) {
  return Percentile(latencies_us, percentile) / 1e3;
}

// Puts p50, p90 and p98 in milliseconds. Reorders.
void PutLatencies(std::vector<std::uint32_t>& latencies_us, Json* json) {
  (*json)["p50_ms"] = Milliseconds(latencies_us, 0.5);
  (*json)["p90_ms"] = Milliseconds(latencies_us, 0.9);
  (*json)["p98_ms"] = Milliseconds(latencies_us, 0.98);
}

// Shares of served requests by source of the image, and gigabytes moved.
void PutPaths(const PathCounts& paths, Json* json) {
  const auto served = paths.requests[0] + paths.requests[1] + paths.requests[2];
  (*json)["resident_share"] = Share(paths.requests[0], served);
  (*json)["host_share"] = Share(paths.requests[1], served);
  (*json)["peer_share"] = Share(paths.requests[2], served);
  (*json)["host_gb"] = static_cast<double>(paths.bytes[1]) / 1e9;
  (*json)["peer_gb"] = static_cast<double>(paths.bytes[2]) / 1e9;
}

// Returns the measures of a row. Reorders the latencies of `sum`.
Json JsonOf(Sum& sum) {
  Json json;
  json["ran"] = sum.ran;
  json["compliant"] = sum.compliant;
  json["ratio"] = Share(sum.compliant, sum.functions);
  json["attainment"] = Share(sum.in_time, sum.requests);
  json["requests"] = sum.requests;
  json["late"] = sum.late;
  json["refused"] = sum.refused;
  json["unserved"] = sum.unserved;
  PutLatencies(sum.latencies_us, &json);
  PutPaths(sum.paths, &json);
  return json;
}

// A column that several figures show; found by `key` in Shown().
struct SharedColumn {
  std::string_view key;
  std::string_view title;
  int decimals = 0;
};

constexpr SharedColumn kColumns[] = {{"ran", "ran", 1},
                                     {"compliant", "compliant", 1},
                                     {"ratio", "ratio", 3},
                                     {"attainment", "in time", 4},
                                     {"p98_ms", "p98 ms", 1},
                                     {"refused", "refused", 0},
                                     {"resident_share", "resident", 3},
                                     {"host_share", "host", 3},
                                     {"peer_share", "peer", 3},
                                     {"gpu_load", "load", 2},
                                     {"load_variance", "load variance", 5}};

// Returns the mean share of busy time over the GPUs of all nodes.
double MeanLoad(const Outcome& outcome) {
  double sum = 0;
  std::size_t gpus = 0;
  for (std::size_t node = 0; node < outcome.nodes.size(); ++node) {
    for (std::size_t gpu = 0; gpu < outcome.nodes[node].size(); ++gpu, ++gpus) {
      sum += outcome.Load(node, gpu);
    }
  }
  return sum / static_cast<double>(std::max<std::size_t>(gpus, 1));
}

}  // namespace

Json MeasuresOf(const Outcome& outcome, const Scenario& scenario) {
  const double percentile = scenario.profiles->percentile;
  Sum all;
  std::map<std::size_t, Sum> models;
  for (std::size_t i = 0; i < outcome.functions.size(); ++i) {
    all.Add(outcome.functions[i], percentile);
    models[scenario.functions[i].model].Add(outcome.functions[i], percentile);
  }
  Json json = JsonOf(all);
  json["gpu_load"] = MeanLoad(outcome);
  for (auto& [model, sum] : models) {
    Json& entry = json["models"][scenario.profiles->models[model].name];
    entry["functions"] = sum.functions;
    entry.update(JsonOf(sum));
  }
  return json;
}

Json SimulatedMeasures(const Scenario& scenario) {
  return MeasuresOf(Simulate(scenario), scenario);
}

Json GpuMeasuresOf(const Outcome& outcome) {
  Json json;
  double worst = 0;
  for (std::size_t gpu = 0; gpu < outcome.nodes.front().size(); ++gpu) {
    std::vector<std::uint32_t> latencies_us = outcome.nodes.front()[gpu].latencies_us;
    const double p98 = Milliseconds(latencies_us, 0.98);
    json["gpu_p98_ms"].push_back(p98);
    json["gpu_loads"].push_back(outcome.Load(0, gpu));
    worst = std::max(worst, p98);
  }
  json["worst_gpu_p98_ms"] = worst;
  return json;
}

double LoadVarianceOf(const Outcome& outcome, std::size_t node) {
  std::vector<double> loads(outcome.nodes[node].size());
  for (std::size_t gpu = 0; gpu < loads.size(); ++gpu) loads[gpu] = outcome.Load(node, gpu);
  const double max_load = std::max(*std::max_element(loads.begin(), loads.end()), 1e-12);
  double sum = 0;
  double squares = 0;
  for (const double load : loads) {
    const double share = load / max_load;
    sum += share;
    squares += share * share;
  }
  const auto count = static_cast<double>(loads.size());
  return squares / count - sum / count * (sum / count);
}

Column Shown(std::string_view key) {
  const auto* const column =
      std::find_if(std::begin(kColumns), std::end(kColumns),
                   [&](const SharedColumn& shared) { return shared.key == key; });
  TORPOR_CHECK(column != std::end(kColumns));
  return {std::string(column->title), std::string(key), column->decimals};
}

}  // namespace torpor::sim
