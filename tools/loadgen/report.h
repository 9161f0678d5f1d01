#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace torpor::loadgen {

// The verdict on a request.
enum class Outcome { kRight, kWrongAnswer, kHttpError, kTransportError, kTimeout };

// The path of a function's model to the GPU, from X-Torpor-Swap; kUnknown without the field.
enum class Residency { kResident, kHost, kPeer, kUnknown };
inline constexpr std::size_t kPaths = 4;
std::string_view PathName(Residency path);  // resident, host, peer, unknown

// The generator reports requests sent with more delay.
inline constexpr Duration kNoticeableLag = std::chrono::milliseconds(10);

// The history of a request. Times are from the beginning of the measured part.
struct Record {
  std::size_t function = 0;  // index in the workload
  Duration intended{};       // below 0 in the warm-up
  Outcome outcome = Outcome::kRight;
  int http_status = 0;  // 0 without an answer
  Duration lag{};       // intended -> sent: the generator's own lateness
  Duration latency{};   // intended -> answered, or given up
  int gpu = -1;         // -1 if unknown; the times below are then 0
  Residency residency = Residency::kUnknown;
  Duration queue{};
  Duration swap{};
  Duration run{};

  bool InWarmUp() const { return intended < Duration::zero(); }
  // Returns whether the request was answered or timed out. A refusal is quicker than an answer and
  // must not make a function look quick.
  bool HasLatency() const;
};

// Statistics of a set of durations; zeros for an empty set. Percentiles are by nearest rank.
struct Distribution {
  std::size_t count = 0;
  double p50_ms = 0, p90_ms = 0, p95_ms = 0, p98_ms = 0, p99_ms = 0, p999_ms = 0;
  double max_ms = 0, mean_ms = 0;
};
Distribution Describe(std::vector<Duration> values);

// Counts of requests.
struct Totals {
  std::uint64_t requests = 0;
  std::uint64_t errors = 0;         // HTTP and transport errors, and time-outs
  std::uint64_t timeouts = 0;       // counted among the errors, too
  std::uint64_t wrong_answers = 0;  // answered with 200 and an unexpected body
  std::uint64_t resident = 0, swaps_pcie = 0, swaps_nvlink = 0;
  std::uint64_t attained = 0;  // right, and within the objective

  // Returns attained / requests, 1 without requests.
  double Attainment() const;
};

// The sum of some of the measured requests.
struct Slice {
  Totals totals;
  // Latencies of answered and timed-out requests.
  Distribution latency;            // from the intended time
  Distribution latency_from_sent;  // from the sending
  std::uint64_t told = 0;          // answers with a GPU and the times of the means below
  double queue_ms = 0, swap_ms = 0, run_ms = 0;
};

// All requests, and the requests of each path, in the order of Residency.
struct Breakdown {
  Slice all;
  std::array<Slice, kPaths> paths;
};

// A function and its objective.
struct ReportedFunction {
  std::string name;
  Duration objective{};    // latency, from the intended time
  double percentile = 98;  // share of requests within the objective, in percent
};

// The requests of a function.
struct FunctionReport {
  ReportedFunction function;
  Breakdown requests;
  double at_percentile_ms = 0;  // latency from the intended time at the percentile

  // Returns whether enough requests attained the objective.
  bool Compliant() const;
};

// The requests with intended times in a minute of the measured part.
struct MinuteReport {
  Totals totals;
  Distribution latency;
  Distribution lag;
};

// The requests of a GPU.
struct GpuReport {
  std::uint64_t requests = 0;
  double load = 0;  // share of the time spent on swaps and runs, 0 to 1
};

// The summary of a run.
struct Report {
  Breakdown requests;      // measured requests
  Totals warm_up;          // requests of the warm-up
  Distribution lag;        // of measured requests
  std::uint64_t late = 0;  // measured requests sent more than kNoticeableLag late
  std::map<int, GpuReport> gpus;
  std::vector<MinuteReport> minutes;  // from the first to the last minute with requests
  std::vector<FunctionReport> functions;
  std::string invalid_because;  // reason against the figures; empty if they are valid

  const Totals& totals() const { return requests.all.totals; }

  // Returns whether no request, warm-up included, had an error or a wrong answer.
  bool Clean() const;

  // Returns the number of functions that meet their objective.
  std::size_t CompliantFunctions() const;
};

// Summarises `records`, in any order. `length` is the length of the measured part.
Report Summarise(const std::vector<ReportedFunction>& functions, const std::vector<Record>& records,
                 Duration length);

// Returns the table printed at the end of a run.
std::string ReportTable(const Report& report);

// Returns the text of report.json.
std::string ReportJson(const Report& report);

// Returns the text of report.csv: lines for all requests and for each function, in total and by
// path.
std::string ReportCsv(const Report& report);

// A file of plot data.
struct PlotFile {
  std::string name;  // without folder
  std::string contents;
};

// Returns data for tools/dev/plot.py: shares of latencies by path, latencies and requests over
// time, and the functions' latencies over their objectives. The last plot's title counts functions
// without any latency, which are not drawn.
std::vector<PlotFile> ReportPlots(const Report& report, const std::vector<Record>& records);

}  // namespace torpor::loadgen
