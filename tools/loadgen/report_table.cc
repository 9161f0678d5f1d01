#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/loadgen/report.h"
#include "tools/text_table/text_table.h"

namespace torpor::loadgen {
namespace {

std::string Tenths(double value) { return absl::StrFormat("%.1f", value); }

std::string Percent(double part) { return absl::StrFormat("%.1f%%", 100 * part); }

TextTable Table(const char* first, std::initializer_list<const char*> others) {
  std::vector<TextTable::Column> columns = {{first}};
  columns.reserve(others.size() + 1);
  for (const char* title : others) columns.push_back({title, TextTable::Align::kRight});
  return TextTable(columns);
}

std::vector<std::string> Cells(const std::string& name, const Slice& slice) {
  const Totals& totals = slice.totals;
  return {name,
          absl::StrCat(totals.requests),
          absl::StrCat(totals.errors),
          absl::StrCat(totals.wrong_answers),
          Tenths(slice.latency.p50_ms),
          Tenths(slice.latency.p98_ms),
          Tenths(slice.latency.p99_ms),
          Percent(totals.Attainment()),
          absl::StrCat(totals.resident),
          absl::StrCat(totals.swaps_pcie),
          absl::StrCat(totals.swaps_nvlink),
          Tenths(slice.queue_ms),
          Tenths(slice.swap_ms),
          Tenths(slice.run_ms)};
}

std::string FunctionTable(const Report& report) {
  TextTable table =
      Table("function", {"requests", "errors", "wrong", "p50 ms", "p98 ms", "p99 ms", "in time",
                         "hits", "pcie", "nvlink", "queue ms", "swap ms", "run ms"});
  for (const FunctionReport& function : report.functions) {
    table.AddRow(Cells(function.function.name, function.requests.all));
  }
  table.AddRow(Cells("all", report.requests.all));
  return table.Render();
}

// Adds a row for each path with requests.
std::string PathTable(const Report& report) {
  TextTable table = Table("path", {"requests", "in time", "p50 ms", "p98 ms", "p99 ms", "sent p98",
                                   "queue ms", "swap ms", "run ms"});
  for (std::size_t path = 0; path < kPaths; ++path) {
    const Slice& slice = report.requests.paths.at(path);
    if (slice.totals.requests == 0) continue;
    table.AddRow({std::string(PathName(static_cast<Residency>(path))),
                  absl::StrCat(slice.totals.requests), Percent(slice.totals.Attainment()),
                  Tenths(slice.latency.p50_ms), Tenths(slice.latency.p98_ms),
                  Tenths(slice.latency.p99_ms), Tenths(slice.latency_from_sent.p98_ms),
                  Tenths(slice.queue_ms), Tenths(slice.swap_ms), Tenths(slice.run_ms)});
  }
  return table.Render();
}

constexpr const char* kLegend =
    "Latencies count from the time at which a request was meant to be sent, \"sent\" ones from "
    "when\n"
    "it was; in time: right, and within the objective. hits: the model was on the GPU; pcie, "
    "nvlink:\n"
    "it was swapped in from the host, from another GPU. queue, swap, run: means of what the "
    "router\n"
    "told. Paths: where the model was; unknown: the answer did not say, or there was none.\n";

std::string LagLines(const Report& report) {
  std::string text = absl::StrFormat("generator's own lag: p50 %.1f ms, p99 %.1f ms, max %.1f ms\n",
                                     report.lag.p50_ms, report.lag.p99_ms, report.lag.max_ms);
  if (report.late > 0) {
    absl::StrAppend(&text, absl::StrFormat("requests sent over %.0f ms late: %d\n",
                                           ToMilliseconds(kNoticeableLag), report.late));
  }
  return text;
}

}  // namespace

std::string ReportTable(const Report& report) {
  std::string text = absl::StrCat(FunctionTable(report), "\n", PathTable(report), kLegend);
  absl::StrAppend(&text, absl::StrFormat("%d of %d functions comply with their objectives\n",
                                         report.CompliantFunctions(), report.functions.size()));
  for (const auto& [gpu, entry] : report.gpus) {
    absl::StrAppend(&text, absl::StrFormat("GPU %d: %d requests, %.0f%% busy\n", gpu,
                                           entry.requests, 100 * entry.load));
  }
  absl::StrAppend(&text, LagLines(report));
  if (report.warm_up.errors + report.warm_up.wrong_answers > 0) {
    absl::StrAppend(&text, absl::StrFormat("in the warm-up: %d errors, %d wrong answers\n",
                                           report.warm_up.errors, report.warm_up.wrong_answers));
  }
  return text;
}

}  // namespace torpor::loadgen
