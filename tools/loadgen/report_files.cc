#include <initializer_list>
#include <string>

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

// Returns latencies and mean times of a slice, in milliseconds.
ordered_json Times(const Slice& slice) {
  return {{"latency_ms", Json(slice.latency)},
          {"latency_from_sent_ms", Json(slice.latency_from_sent)},
          {"queue_ms", slice.queue_ms},
          {"swap_ms", slice.swap_ms},
          {"run_ms", slice.run_ms}};
}

ordered_json Json(const Breakdown& requests) {
  ordered_json json = Json(requests.all.totals);
  json.update(Times(requests.all));
  for (std::size_t path = 0; path < kPaths; ++path) {
    const Slice& slice = requests.paths.at(path);
    if (slice.totals.requests == 0) continue;
    ordered_json entry = {{"requests", slice.totals.requests},
                          {"attainment", slice.totals.Attainment()}};
    entry.update(Times(slice));
    json["paths"][std::string(PathName(static_cast<Residency>(path)))] = entry;
  }
  return json;
}

ordered_json Json(const FunctionReport& function) {
  ordered_json json = {{"name", function.function.name},
                       {"objective_ms", ToMilliseconds(function.function.objective)},
                       {"percentile", function.function.percentile},
                       {"compliant", function.Compliant()},
                       {"latency_at_percentile_ms", function.at_percentile_ms}};
  json.update(Json(function.requests));
  return json;
}

// Quotes a cell by RFC 4180.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

// Returns the values as cells with a comma before each; empty cells unless `known`.
std::string Cells(std::initializer_list<double> values, bool known) {
  std::string cells;
  for (const double value : values) {
    absl::StrAppend(&cells, known ? absl::StrFormat(",%.3f", value) : ",");
  }
  return cells;
}

std::string Cells(const Distribution& d) {
  return Cells({d.p50_ms, d.p90_ms, d.p95_ms, d.p98_ms, d.p99_ms, d.p999_ms, d.max_ms, d.mean_ms},
               d.count > 0);
}

constexpr const char* kCsvHeader =
    "function,path,objective_ms,percentile,requests,errors,timeouts,wrong_answers,attainment,"
    "p50_ms,p90_ms,p95_ms,p98_ms,p99_ms,p999_ms,max_ms,mean_ms,"
    "sent_p50_ms,sent_p90_ms,sent_p95_ms,sent_p98_ms,sent_p99_ms,sent_p999_ms,sent_max_ms,"
    "sent_mean_ms,queue_ms,swap_ms,run_ms\n";

// Writes a line. Unknown figures are empty cells. `function` holds the first cell, `objective` the
// two cells after the path.
std::string CsvLine(const std::string& function, std::string_view path,
                    const std::string& objective, const Slice& slice) {
  const Totals& totals = slice.totals;
  return absl::StrCat(function, ",", std::string(path), ",", objective, ",", totals.requests, ",",
                      totals.errors, ",", totals.timeouts, ",", totals.wrong_answers,
                      totals.requests > 0 ? absl::StrFormat(",%.6f", totals.Attainment()) : ",",
                      Cells(slice.latency), Cells(slice.latency_from_sent),
                      Cells({slice.queue_ms, slice.swap_ms, slice.run_ms}, slice.told > 0), "\n");
}

// Returns a line for all requests (path "*") and a line for each path.
std::string CsvLines(const std::string& function, const std::string& objective,
                     const Breakdown& requests) {
  std::string lines = CsvLine(function, "*", objective, requests.all);
  for (std::size_t path = 0; path < kPaths; ++path) {
    lines += CsvLine(function, PathName(static_cast<Residency>(path)), objective,
                     requests.paths.at(path));
  }
  return lines;
}

}  // namespace

std::string ReportJson(const Report& report) {
  ordered_json json = Json(report.requests);
  json["valid"] = report.invalid_because.empty();
  if (!report.invalid_because.empty()) json["invalid_because"] = report.invalid_because;
  json["compliant_functions"] = report.CompliantFunctions();
  json["lag_ms"] = Json(report.lag);
  json["late_requests"] = report.late;
  json["warm_up"] = Json(report.warm_up);
  json["gpus"] = ordered_json::array();
  for (const auto& [gpu, entry] : report.gpus) {
    json["gpus"].push_back({{"gpu", gpu}, {"requests", entry.requests}, {"load", entry.load}});
  }
  json["minutes"] = ordered_json::array();
  for (const MinuteReport& minute : report.minutes) {
    ordered_json entry = Json(minute.totals);
    entry["latency_ms"] = Json(minute.latency);
    entry["lag_ms"] = Json(minute.lag);
    json["minutes"].push_back(entry);
  }
  json["functions"] = ordered_json::array();
  for (const FunctionReport& function : report.functions) {
    json["functions"].push_back(Json(function));
  }
  return json.dump(2) + "\n";
}

std::string ReportCsv(const Report& report) {
  std::string csv = kCsvHeader + CsvLines("*", ",", report.requests);
  for (const FunctionReport& function : report.functions) {
    const std::string objective = absl::StrFormat(
        "%g,%g", ToMilliseconds(function.function.objective), function.function.percentile);
    csv += CsvLines(Quoted(function.function.name), objective, function.requests);
  }
  return csv;
}

}  // namespace torpor::loadgen
