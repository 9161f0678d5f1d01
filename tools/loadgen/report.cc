#include "tools/loadgen/report.h"

#include <algorithm>
#include <numeric>

#include "base/nearest_rank.h"

namespace torpor::loadgen {
namespace {

// Returns the nearest-rank percentile (`rank` from 0 to 1) in milliseconds. `sorted` must not be
// empty.
double Rank(const std::vector<Duration>& sorted, double rank) {
  return ToMilliseconds(sorted[NearestRank(sorted.size(), rank)]);
}

bool IsError(Outcome outcome) {
  return outcome == Outcome::kHttpError || outcome == Outcome::kTransportError ||
         outcome == Outcome::kTimeout;
}

// Adds a record to the totals. Only right answers within the objective attain the objective.
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

// Requests before their summary.
class Gathered {
 public:
  void Add(const Record& record, Duration objective) {
    Count(record, objective, &slice_.totals);
    if (record.HasLatency()) {
      latencies_.push_back(record.latency);
      from_sent_.push_back(record.latency - record.lag);
    }
    if (record.gpu < 0) return;
    ++slice_.told;
    queue_ += record.queue;
    swap_ += record.swap;
    run_ += record.run;
  }

  const std::vector<Duration>& latencies() const { return latencies_; }

  Slice SumUp() const {
    Slice slice = slice_;
    slice.latency = Describe(latencies_);
    slice.latency_from_sent = Describe(from_sent_);
    slice.queue_ms = MeanMs(queue_);
    slice.swap_ms = MeanMs(swap_);
    slice.run_ms = MeanMs(run_);
    return slice;
  }

 private:
  // Mean over the answers that told times; 0 without any.
  double MeanMs(Duration total) const {
    return slice_.told == 0 ? 0 : ToMilliseconds(total) / static_cast<double>(slice_.told);
  }

  Slice slice_;  // the counts
  std::vector<Duration> latencies_;
  std::vector<Duration> from_sent_;
  Duration queue_{}, swap_{}, run_{};
};

// Requests before their summary, in total and by path.
struct GatheredBreakdown {
  Gathered all;
  std::array<Gathered, kPaths> paths;

  void Add(const Record& record, Duration objective) {
    all.Add(record, objective);
    paths.at(static_cast<std::size_t>(record.residency)).Add(record, objective);
  }

  Breakdown SumUp() const {
    Breakdown breakdown;
    breakdown.all = all.SumUp();
    for (std::size_t path = 0; path < kPaths; ++path) {
      breakdown.paths.at(path) = paths.at(path).SumUp();
    }
    return breakdown;
  }
};

// Requests of a minute before their summary.
struct GatheredMinute {
  Totals totals;
  std::vector<Duration> latencies;
  std::vector<Duration> lags;

  void Add(const Record& record, Duration objective) {
    Count(record, objective, &totals);
    lags.push_back(record.lag);
    if (record.HasLatency()) latencies.push_back(record.latency);
  }
};

// Gathers measured records.
class Gatherer {
 public:
  explicit Gatherer(const std::vector<ReportedFunction>& functions)
      : functions_(functions), by_function_(functions.size()) {}

  void Add(const Record& record) {
    const Duration objective = functions_.at(record.function).objective;
    all_.Add(record, objective);
    by_function_[record.function].Add(record, objective);
    lags_.push_back(record.lag);
    const auto minute = static_cast<std::size_t>(record.intended / std::chrono::minutes(1));
    if (minute >= by_minute_.size()) by_minute_.resize(minute + 1);
    by_minute_[minute].Add(record, objective);
  }

  void SumUp(Report* report) const {
    report->requests = all_.SumUp();
    report->lag = Describe(lags_);
    report->late = static_cast<std::uint64_t>(std::count_if(
        lags_.begin(), lags_.end(), [](Duration lag) { return lag > kNoticeableLag; }));
    report->minutes.reserve(by_minute_.size());
    for (const GatheredMinute& minute : by_minute_) {
      report->minutes.push_back({minute.totals, Describe(minute.latencies), Describe(minute.lags)});
    }
    report->functions.reserve(functions_.size());
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      report->functions.push_back({functions_[i], by_function_[i].SumUp(), AtPercentile(i)});
    }
  }

 private:
  // Returns the latency in milliseconds at the function's own percentile; 0 without latencies.
  double AtPercentile(std::size_t function) const {
    std::vector<Duration> latencies = by_function_[function].all.latencies();
    if (latencies.empty()) return 0;
    std::sort(latencies.begin(), latencies.end());
    return Rank(latencies, functions_[function].percentile / 100);
  }

  const std::vector<ReportedFunction>& functions_;
  GatheredBreakdown all_;
  std::vector<GatheredBreakdown> by_function_;
  std::vector<GatheredMinute> by_minute_;
  std::vector<Duration> lags_;
};

}  // namespace

std::string_view PathName(Residency path) {
  constexpr std::array<std::string_view, kPaths> kNames = {"resident", "host", "peer", "unknown"};
  return kNames.at(static_cast<std::size_t>(path));
}

bool Record::HasLatency() const { return !IsError(outcome) || outcome == Outcome::kTimeout; }

Distribution Describe(std::vector<Duration> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const Duration sum = std::accumulate(values.begin(), values.end(), Duration{});
  return {.count = values.size(),
          .p50_ms = Rank(values, 0.5),
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

bool FunctionReport::Compliant() const {
  // The rounding of a percentile must not decide.
  return requests.all.totals.Attainment() >= function.percentile / 100 - 1e-12;
}

bool Report::Clean() const {
  return totals().errors + totals().wrong_answers + warm_up.errors + warm_up.wrong_answers == 0;
}

std::size_t Report::CompliantFunctions() const {
  return static_cast<std::size_t>(
      std::count_if(functions.begin(), functions.end(),
                    [](const FunctionReport& function) { return function.Compliant(); }));
}

Report Summarise(const std::vector<ReportedFunction>& functions, const std::vector<Record>& records,
                 Duration length) {
  Report report;
  Gatherer gatherer(functions);
  for (const Record& record : records) {
    if (record.InWarmUp()) {
      Count(record, functions.at(record.function).objective, &report.warm_up);
      continue;
    }
    gatherer.Add(record);
    if (record.gpu >= 0) {
      GpuReport& gpu = report.gpus[record.gpu];
      ++gpu.requests;
      gpu.load += ToSeconds(record.swap + record.run) / ToSeconds(length);
    }
  }
  gatherer.SumUp(&report);
  return report;
}

}  // namespace torpor::loadgen
