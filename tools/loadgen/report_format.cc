#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tools/loadgen/report.h"
#include "tools/text_table/text_table.h"

namespace torpor::loadgen {
namespace {

using nlohmann::ordered_json;

ordered_json Json(const Distribution& d) {
  return {{"p50", d.p50_ms}, {"p90", d.p90_ms},   {"p95", d.p95_ms}, {"p98", d.p98_ms},
          {"p99", d.p99_ms}, {"p999", d.p999_ms}, {"max", d.max_ms}, {"mean", d.mean_ms}};
}

ordered_json Json(const Totals& totals) {
  return {{"requests", totals.requests},       {"errors", totals.errors},
          {"timeouts", totals.timeouts},       {"wrong_answers", totals.wrong_answers},
          {"attainment", totals.Attainment()}, {"resident", totals.resident},
          {"swaps_pcie", totals.swaps_pcie},   {"swaps_nvlink", totals.swaps_nvlink}};
}

ordered_json Json(const FunctionReport& function) {
  ordered_json json = {{"name", function.name},
                       {"objective_ms", ToMilliseconds(function.objective)}};
  json.update(Json(function.totals));
  json["latency_ms"] = Json(function.latency);
  json["queue_ms"] = function.queue_ms;
  json["swap_ms"] = function.swap_ms;
  json["run_ms"] = function.run_ms;
  return json;
}

std::string Tenths(double value) { return absl::StrFormat("%.1f", value); }

std::vector<std::string> Cells(const std::string& name, const Totals& totals,
                               const Distribution& latency) {
  return {name,
          absl::StrCat(totals.requests),
          absl::StrCat(totals.errors),
          absl::StrCat(totals.wrong_answers),
          Tenths(latency.p50_ms),
          Tenths(latency.p98_ms),
          Tenths(latency.p99_ms),
          absl::StrFormat("%.1f%%", 100 * totals.Attainment()),
          absl::StrCat(totals.resident),
          absl::StrCat(totals.swaps_pcie),
          absl::StrCat(totals.swaps_nvlink)};
}

std::string FunctionTable(const Report& report) {
  std::vector<TextTable::Column> columns = {{"function"}};
  for (const char* title : {"requests", "errors", "wrong", "p50 ms", "p98 ms", "p99 ms", "in time",
                            "hits", "pcie", "nvlink", "queue ms", "swap ms", "run ms"}) {
    columns.push_back({title, TextTable::Align::kRight});
  }
  TextTable table(columns);
  for (const FunctionReport& function : report.functions) {
    std::vector<std::string> cells = Cells(function.name, function.totals, function.latency);
    for (const double mean_ms : {function.queue_ms, function.swap_ms, function.run_ms}) {
      cells.push_back(Tenths(mean_ms));
    }
    table.AddRow(cells);
  }
  std::vector<std::string> all = Cells("all", report.totals, report.latency);
  all.resize(columns.size());
  table.AddRow(all);
  return table.Render();
}

constexpr const char* kLegend =
    "Latencies count from the time at which a request was meant to be sent; in time: right, and\n"
    "within the objective. hits: the model was on the GPU; pcie, nvlink: it was swapped in from\n"
    "the host, from another GPU. queue, swap, run: means of what the router told.\n";

}  // namespace

std::string ReportJson(const Report& report) {
  ordered_json json = Json(report.totals);
  json["latency_ms"] = Json(report.latency);
  json["lag_ms"] = Json(report.lag);
  json["warm_up"] = Json(report.warm_up);
  json["gpus"] = ordered_json::array();
  for (const auto& [gpu, entry] : report.gpus) {
    json["gpus"].push_back({{"gpu", gpu}, {"requests", entry.requests}, {"load", entry.load}});
  }
  json["functions"] = ordered_json::array();
  for (const FunctionReport& function : report.functions) {
    json["functions"].push_back(Json(function));
  }
  return json.dump(2) + "\n";
}

std::string ReportTable(const Report& report) {
  std::string text = FunctionTable(report) + kLegend;
  for (const auto& [gpu, entry] : report.gpus) {
    absl::StrAppend(&text, absl::StrFormat("GPU %d: %d requests, %.0f%% busy\n", gpu,
                                           entry.requests, 100 * entry.load));
  }
  absl::StrAppend(&text,
                  absl::StrFormat("generator's own lag: p50 %.1f ms, p99 %.1f ms, max %.1f ms\n",
                                  report.lag.p50_ms, report.lag.p99_ms, report.lag.max_ms));
  if (report.warm_up.errors + report.warm_up.wrong_answers > 0) {
    absl::StrAppend(&text, absl::StrFormat("in the warm-up: %d errors, %d wrong answers\n",
                                           report.warm_up.errors, report.warm_up.wrong_answers));
  }
  return text;
}

}  // namespace torpor::loadgen
