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

enum class Outcome { kRight, kWrongAnswer, kHttpError, kTransportError, kTimeout };
// X-Torpor-Swap: the path by which a function's model came to the GPU; none told is kUnknown.
enum class Residency { kResident, kHost, kPeer, kUnknown };
inline constexpr std::size_t kPaths = 4;
std::string_view PathName(Residency path);  // resident, host, peer, unknown

// A generator that is later than this with a request says so.
inline constexpr Duration kNoticeableLag = std::chrono::milliseconds(10);

// One request, as it went.
struct Record {
  std::size_t function = 0;
  Duration intended{};  // from the begin of the measured part; before 0: in the warm-up
  Outcome outcome = Outcome::kRight;
  int http_status = 0;  // 0: there was no answer
  Duration lag{};       // intended -> sent: the generator's own lateness
  Duration latency{};   // intended -> answered, or given up
  int gpu = -1;         // -1: the answer did not say; likewise unset times below are 0
  Residency residency = Residency::kUnknown;
  Duration queue{};
  Duration swap{};
  Duration run{};

  bool InWarmUp() const { return intended < Duration::zero(); }
  // It was answered or timed out: a refusal is quicker than an answer and must not make a function
  // look quick.
  bool HasLatency() const;
};

// Of a set of durations; zeros when there are none. Percentiles are the nearest rank's.
struct Distribution {
  std::size_t count = 0;
  double p50_ms = 0, p90_ms = 0, p95_ms = 0, p98_ms = 0, p99_ms = 0, p999_ms = 0;
  double max_ms = 0, mean_ms = 0;
};
Distribution Describe(std::vector<Duration> values);

struct Totals {
  std::uint64_t requests = 0;
  std::uint64_t errors = 0;         // HTTP and transport errors, and time-outs
  std::uint64_t timeouts = 0;       // counted among the errors too
  std::uint64_t wrong_answers = 0;  // answered with 200, but not what was expected
  std::uint64_t resident = 0, swaps_pcie = 0, swaps_nvlink = 0;
  std::uint64_t attained = 0;  // right, and within the objective

  double Attainment() const;
};

// Some of the measured requests, summed up.
struct Slice {
  Totals totals;
  // Of the requests that were answered or timed out.
  Distribution latency;            // from the intended time
  Distribution latency_from_sent;  // from when the generator sent it
  std::uint64_t told = 0;          // answers that told the means below, and the GPU
  double queue_ms = 0, swap_ms = 0, run_ms = 0;
};

// Requests together, and by path in the order of Residency.
struct Breakdown {
  Slice all;
  std::array<Slice, kPaths> paths;
};

struct ReportedFunction {
  std::string name;
  Duration objective{};
  double percentile = 98;  // of the requests that are to attain it
};

struct FunctionReport {
  ReportedFunction function;
  Breakdown requests;
  double at_percentile_ms = 0;  // the latency (from the intended time) at the percentile

  // As many requests attained the objective as were to.
  bool Compliant() const;
};

// The requests whose intended times lie in one minute of the measured part.
struct MinuteReport {
  Totals totals;
  Distribution latency;
  Distribution lag;
};

struct GpuReport {
  std::uint64_t requests = 0;
  double load = 0;  // part of the time in which it swapped or ran a request
};

struct Report {
  Breakdown requests;      // measured
  Totals warm_up;          // those before them
  Distribution lag;        // of the measured
  std::uint64_t late = 0;  // measured, and sent over kNoticeableLag after their time
  std::map<int, GpuReport> gpus;
  std::vector<MinuteReport> minutes;  // from the first to the last that has requests
  std::vector<FunctionReport> functions;
  std::string invalid_because;  // why the figures do not count; empty if they do

  const Totals& totals() const { return requests.all.totals; }

  // No error and no wrong answer, in the warm-up neither.
  bool Clean() const;
  std::size_t CompliantFunctions() const;
};

// `length` is that of the measured part. Records may come in any order.
Report Summarise(const std::vector<ReportedFunction>& functions, const std::vector<Record>& records,
                 Duration length);

// The table for people.
std::string ReportTable(const Report& report);

// report.json.
std::string ReportJson(const Report& report);

// report.csv: lines for all requests and for each function's, each together and by path.
std::string ReportCsv(const Report& report);

struct PlotFile {
  std::string name;  // without folder
  std::string contents;
};

// What tools/dev/plot.py draws: shares of latencies by path, latencies and requests over time, and
// the functions' latencies over their objectives. A function none of whose requests has a latency
// is counted in the last one's title, not drawn.
std::vector<PlotFile> ReportPlots(const Report& report, const std::vector<Record>& records);

}  // namespace torpor::loadgen
