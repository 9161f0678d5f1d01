#include <string>
#include <utility>
#include <vector>

#include "tools/loadgen/report.h"
#include "tools/plot/plot_data.h"

namespace torpor::loadgen {
namespace {

std::string LatencyPlot(const std::vector<Record>& records) {
  plot::CdfSeries intended{"all, from the intended time", {}};
  plot::CdfSeries sent{"all, from the time sent", {}};
  std::vector<plot::CdfSeries> paths(kPaths);
  for (const Record& record : records) {
    if (record.InWarmUp() || !record.HasLatency()) continue;
    intended.samples.push_back(ToMilliseconds(record.latency));
    sent.samples.push_back(ToMilliseconds(record.latency - record.lag));
    paths.at(static_cast<std::size_t>(record.residency))
        .samples.push_back(ToMilliseconds(record.latency));
  }
  plot::CdfPlot plot{"Latency", "ms", true, {std::move(intended), std::move(sent)}};
  for (std::size_t path = 0; path < kPaths; ++path) {
    if (paths[path].samples.empty()) continue;
    paths[path].name = PathName(static_cast<Residency>(path));
    plot.series.push_back(std::move(paths[path]));
  }
  return PlotJson(plot);
}

std::string MinutesPlot(const Report& report) {
  plot::LinePlot plot{"Latency from the intended time",
                      "minute",
                      "ms",
                      true,
                      {{"p50", {}}, {"p98", {}}, {"p99", {}}}};
  for (std::size_t minute = 0; minute < report.minutes.size(); ++minute) {
    const Distribution& latency = report.minutes[minute].latency;
    const auto x = static_cast<double>(minute);
    plot.series[0].points.emplace_back(x, latency.p50_ms);
    plot.series[1].points.emplace_back(x, latency.p98_ms);
    plot.series[2].points.emplace_back(x, latency.p99_ms);
  }
  return PlotJson(plot);
}

std::string RequestsPlot(const Report& report) {
  plot::LinePlot plot{
      "Requests", "minute", "requests", false, {{"sent", {}}, {"right and in time", {}}}};
  for (std::size_t minute = 0; minute < report.minutes.size(); ++minute) {
    const Totals& totals = report.minutes[minute].totals;
    const auto x = static_cast<double>(minute);
    plot.series[0].points.emplace_back(x, totals.requests);
    plot.series[1].points.emplace_back(x, totals.attained);
  }
  return PlotJson(plot);
}

std::string ObjectivesPlot(const Report& report) {
  plot::CdfSeries functions{"functions", {}};
  std::size_t refused = 0;
  for (const FunctionReport& function : report.functions) {
    const Slice& requests = function.requests.all;
    const double objective_ms = ToMilliseconds(function.function.objective);
    if (requests.totals.requests == 0 || objective_ms <= 0) continue;
    if (requests.latency.count == 0) {
      ++refused;
      continue;
    }
    functions.samples.push_back(function.at_percentile_ms / objective_ms);
  }
  std::string title = "Latency at the objective's percentile";
  if (refused > 0) title += ", without " + std::to_string(refused) + " that had no answer";
  return PlotJson(
      plot::CdfPlot{std::move(title), "latency over objective", true, {std::move(functions)}});
}

}  // namespace

std::vector<PlotFile> ReportPlots(const Report& report, const std::vector<Record>& records) {
  return {{"latency.plot.json", LatencyPlot(records)},
          {"latency_by_minute.plot.json", MinutesPlot(report)},
          {"requests_by_minute.plot.json", RequestsPlot(report)},
          {"objectives.plot.json", ObjectivesPlot(report)}};
}

}  // namespace torpor::loadgen
