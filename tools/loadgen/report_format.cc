#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nlohmann/json.hpp"
#include "tools/loadgen/report.h"

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

std::string Row(std::string_view name, const Totals& totals, const Distribution& latency) {
  return absl::StrFormat("%-20s %8d %6d %6d %9.1f %9.1f %9.1f %8.1f%% %6d %6d %6d",
                         std::string(name), totals.requests, totals.errors, totals.wrong_answers,
                         latency.p50_ms, latency.p98_ms, latency.p99_ms, 100 * totals.Attainment(),
                         totals.resident, totals.swaps_pcie, totals.swaps_nvlink);
}

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
  std::string text =
      absl::StrFormat("%-20s %8s %6s %6s %9s %9s %9s %9s %6s %6s %6s %8s %8s %8s\n", "function",
                      "requests", "errors", "wrong", "p50 ms", "p98 ms", "p99 ms", "in time",
                      "hits", "pcie", "nvlink", "queue ms", "swap ms", "run ms");
  for (const FunctionReport& function : report.functions) {
    absl::StrAppend(&text, Row(function.name, function.totals, function.latency),
                    absl::StrFormat(" %8.1f %8.1f %8.1f\n", function.queue_ms, function.swap_ms,
                                    function.run_ms));
  }
  absl::StrAppend(&text, Row("all", report.totals, report.latency), "\n");
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
