#include "bench/truth/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace torpor::truth {
namespace {

struct Row {
  const char* name;
  const char* key;
  double Findings::*figure;
  int decimals;
};

constexpr std::array<Row, 10> kRows = {{
    {"requests in time", "attainment", &Findings::attainment, 3},
    {"compliant functions", "compliant", &Findings::compliant, 0},
    {"hit ratio", "hit_ratio", &Findings::hit_ratio, 3},
    {"from the host", "from_host", &Findings::from_host, 3},
    {"from another GPU", "from_peer", &Findings::from_peer, 3},
    {"GB over PCIe", "pcie_gb", &Findings::pcie_gb, 2},
    {"GB over NVLink", "nvlink_gb", &Findings::nvlink_gb, 2},
    {"p50 ms", "p50_ms", &Findings::p50_ms, 2},
    {"p98 ms", "p98_ms", &Findings::p98_ms, 2},
    {"GPUs busy", "gpu_load", &Findings::gpu_load, 3},
}};

nlohmann::ordered_json ToJson(const Findings& findings) {
  nlohmann::ordered_json json = {{"requests", findings.requests}};
  for (const Row& row : kRows) json[row.key] = findings.*row.figure;
  return json;
}

struct Range {
  double mean = 0;
  double least = 0;
  double most = 0;
};

Range RangeOf(const std::vector<Findings>& simulations, const Row& row) {
  Range range = {0, simulations.front().*row.figure, simulations.front().*row.figure};
  for (const Findings& findings : simulations) {
    const double value = findings.*row.figure;
    range.mean += value / static_cast<double>(simulations.size());
    range.least = std::min(range.least, value);
    range.most = std::max(range.most, value);
  }
  return range;
}

double Difference(double daemon, double simulator) {
  return daemon == 0 ? 0 : (simulator - daemon) / daemon;
}

}  // namespace

nlohmann::ordered_json ToJson(const Comparison& comparison) {
  nlohmann::ordered_json json = {
      {"load", comparison.load},
      {"valid", comparison.is_valid},
      {"emulation", comparison.account},
      {"loadgen_lag_p99_ms", comparison.lag_p99_ms},
      {"daemon", ToJson(comparison.daemon)},
      {"simulations", nlohmann::ordered_json::array()},
      {"simulator_without_replicas", ToJson(comparison.without_replicas)}};
  for (const Findings& findings : comparison.simulator) {
    json["simulations"].push_back(ToJson(findings));
  }
  for (const Row& row : kRows) {
    json["difference"][row.key] =
        Difference(comparison.daemon.*row.figure, RangeOf(comparison.simulator, row).mean);
  }
  return json;
}

std::string ToMarkdown(const Comparison& comparison) {
  std::string text = fmt::format(
      "### {:.0f}% load: {} requests in {:.0f} s\n\n"
      "| | daemon | simulator | difference | lowest to highest | without replicas |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: |\n",
      comparison.load * 100, comparison.daemon.requests, comparison.length_s);
  for (const Row& row : kRows) {
    const auto number = [&](double value) { return fmt::format("{:.{}f}", value, row.decimals); };
    const double daemon = comparison.daemon.*row.figure;
    const Range simulated = RangeOf(comparison.simulator, row);
    text += fmt::format("| {} | {} | {} | {:+.1f}% | {} to {} | {} |\n", row.name, number(daemon),
                        number(simulated.mean), Difference(daemon, simulated.mean) * 100,
                        number(simulated.least), number(simulated.most),
                        number(comparison.without_replicas.*row.figure));
  }
  return text + "\n" + comparison.account + "\n";
}

}  // namespace torpor::truth
