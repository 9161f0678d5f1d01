#include "tools/loadgen/report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace torpor::loadgen {
namespace {

double Rank(const std::vector<Duration>& sorted, double quantile) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(quantile * static_cast<double>(sorted.size()) - 1e-9));
  return ToMilliseconds(sorted[std::max<std::size_t>(rank, 1) - 1]);
}

bool IsError(Outcome outcome) {
  return outcome == Outcome::kHttpError || outcome == Outcome::kTransportError ||
         outcome == Outcome::kTimeout;
}

void Count(const Record& record, Duration objective, Totals* totals) {
  ++totals->requests;
  totals->errors += IsError(record.outcome) ? 1 : 0;
  totals->timeouts += record.outcome == Outcome::kTimeout ? 1 : 0;
  totals->wrong_answers += record.outcome == Outcome::kWrongAnswer ? 1 : 0;
  totals->resident += record.residency == Residency::kResident ? 1 : 0;
  totals->swaps_pcie += record.residency == Residency::kHost ? 1 : 0;
  totals->swaps_nvlink += record.residency == Residency::kPeer ? 1 : 0;
  const bool attained = record.outcome == Outcome::kRight && record.latency <= objective;
  totals->attained += attained ? 1 : 0;
}

// A refusal is quicker than an answer and must not make a function look quick.
bool HasLatency(const Record& record) {
  return !IsError(record.outcome) || record.outcome == Outcome::kTimeout;
}

// What is gathered for a function before it is summed up.
struct Gathered {
  std::vector<Duration> latencies;
  Duration queue{}, swap{}, run{};
  std::uint64_t told = 0;

  void Add(const Record& record) {
    if (HasLatency(record)) latencies.push_back(record.latency);
    if (record.gpu < 0) return;
    ++told;
    queue += record.queue;
    swap += record.swap;
    run += record.run;
  }

  double MeanMs(Duration total) const {
    return told == 0 ? 0 : ToMilliseconds(total) / static_cast<double>(told);
  }
};

}  // namespace

Distribution Describe(std::vector<Duration> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const Duration sum = std::accumulate(values.begin(), values.end(), Duration{});
  return {.p50_ms = Rank(values, 0.5),
          .p90_ms = Rank(values, 0.9),
          .p95_ms = Rank(values, 0.95),
          .p98_ms = Rank(values, 0.98),
          .p99_ms = Rank(values, 0.99),
          .p999_ms = Rank(values, 0.999),
          .max_ms = ToMilliseconds(values.back()),
          .mean_ms = ToMilliseconds(sum) / static_cast<double>(values.size())};
}

double Totals::Attainment() const {
  return requests == 0 ? 1 : static_cast<double>(attained) / static_cast<double>(requests);
}

bool Report::Clean() const {
  return totals.errors + totals.wrong_answers + warm_up.errors + warm_up.wrong_answers == 0;
}

Report Summarise(const std::vector<ReportedFunction>& functions, const std::vector<Record>& records,
                 Duration length) {
  Report report;
  for (const ReportedFunction& function : functions) {
    FunctionReport entry;
    entry.name = function.name;
    entry.objective = function.objective;
    report.functions.push_back(entry);
  }
  std::vector<Gathered> gathered(functions.size());
  std::vector<Duration> latencies;
  std::vector<Duration> lags;
  for (const Record& record : records) {
    FunctionReport& function = report.functions.at(record.function);
    if (record.warm_up) {
      Count(record, function.objective, &report.warm_up);
      continue;
    }
    Count(record, function.objective, &function.totals);
    Count(record, function.objective, &report.totals);
    gathered[record.function].Add(record);
    lags.push_back(record.lag);
    if (HasLatency(record)) latencies.push_back(record.latency);
    if (record.gpu >= 0) {
      GpuReport& gpu = report.gpus[record.gpu];
      ++gpu.requests;
      gpu.load += ToSeconds(record.swap + record.run) / ToSeconds(length);
    }
  }
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    FunctionReport& function = report.functions[i];
    function.latency = Describe(std::move(gathered[i].latencies));
    function.queue_ms = gathered[i].MeanMs(gathered[i].queue);
    function.swap_ms = gathered[i].MeanMs(gathered[i].swap);
    function.run_ms = gathered[i].MeanMs(gathered[i].run);
  }
  report.latency = Describe(std::move(latencies));
  report.lag = Describe(std::move(lags));
  return report;
}

}  // namespace torpor::loadgen
