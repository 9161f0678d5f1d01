#include "tools/sim/figures/measures.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace torpor::sim {
namespace {

// What some functions have in common.
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

double Share(std::uint64_t part, std::uint64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

double Milliseconds(std::vector<std::uint32_t>& latencies_us, double percentile) {
  return Percentile(latencies_us, percentile) / 1e3;
}

void PutLatencies(std::vector<std::uint32_t>& latencies_us, Json* json) {
  (*json)["p50_ms"] = Milliseconds(latencies_us, 0.5);
  (*json)["p90_ms"] = Milliseconds(latencies_us, 0.9);
  (*json)["p98_ms"] = Milliseconds(latencies_us, 0.98);
}

void PutPaths(const PathCounts& paths, Json* json) {
  const auto served = paths.requests[0] + paths.requests[1] + paths.requests[2];
  (*json)["resident_share"] = Share(paths.requests[0], served);
  (*json)["host_share"] = Share(paths.requests[1], served);
  (*json)["peer_share"] = Share(paths.requests[2], served);
  (*json)["host_gb"] = static_cast<double>(paths.bytes[1]) / 1e9;
  (*json)["peer_gb"] = static_cast<double>(paths.bytes[2]) / 1e9;
}

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

Scenario BaseScenario(const FigureOptions& options, const NodeModel& node,
                      const std::string& system, workload::ArrivalProcess arrivals,
                      std::uint64_t seed) {
  Scenario scenario;
  scenario.profiles = options.profiles;
  scenario.node = &node;
  const auto named = SystemNamed(system);
  if (!named.ok()) throw std::invalid_argument(std::string(named.status().message()));
  scenario.system = *named;
  scenario.arrivals.process = arrivals;
  scenario.seed = seed;
  return scenario;
}

NodeModel NodeOf(const FigureOptions& options, const std::string& name) {
  if (options.node) return *options.node;
  return *ReadNodeModel(name, options.profiles->reserved);
}

std::vector<std::string> SystemsOf(const FigureOptions& options,
                                   const std::vector<std::string>& own) {
  return options.systems.empty() ? own : options.systems;
}

std::vector<std::size_t> FunctionsOf(const FigureOptions& options,
                                     const std::vector<std::size_t>& own) {
  return options.functions.empty() ? own : options.functions;
}

std::vector<double> RateFactorsOf(const FigureOptions& options, const std::vector<double>& own) {
  return options.rate_factors.empty() ? own : options.rate_factors;
}

std::vector<workload::ArrivalProcess> ArrivalsOf(const FigureOptions& options) {
  if (!options.arrivals.empty()) return options.arrivals;
  return {workload::ArrivalProcess::kArtifact, workload::ArrivalProcess::kPoisson};
}

std::vector<FunctionSpec> FunctionsOfModel(const Profiles& profiles, std::string_view model,
                                           std::size_t count) {
  return FunctionsInTurn(profiles, {ModelNamed(profiles, model)}, count);
}

std::string Number(std::optional<double> number, int decimals) {
  return number ? absl::StrFormat("%.*f", decimals, *number) : "not simulated";
}

std::size_t ModelNamed(const Profiles& profiles, std::string_view name) {
  const auto model = FindModel(profiles, name);
  if (!model.ok()) throw std::invalid_argument(std::string(model.status().message()));
  return *model;
}

Json Labels(const std::string& system, std::size_t functions, workload::ArrivalProcess arrivals) {
  return {{"system", system},
          {"functions", functions},
          {"arrivals", std::string(workload::ArrivalProcessName(arrivals))}};
}

const Json* FindRow(const std::vector<Json>& rows, const Json& labels) {
  for (const Json& row : rows) {
    const auto items = labels.items();
    const bool matches = std::all_of(items.begin(), items.end(), [&](const auto& label) {
      return row.contains(label.key()) && row.at(label.key()) == label.value();
    });
    if (matches) return &row;
  }
  return nullptr;
}

std::optional<double> MeasureOf(const std::vector<Json>& rows, const Json& labels,
                                const std::string& key) {
  const Json* const row = FindRow(rows, labels);
  if (row == nullptr) return std::nullopt;
  const Json::json_pointer pointer(absl::StrCat("/", key));
  if (!row->contains(pointer)) return std::nullopt;
  return row->at(pointer).get<double>();
}

}  // namespace torpor::sim
