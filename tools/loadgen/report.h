#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"

namespace torpor::loadgen {

enum class Outcome { kRight, kWrongAnswer, kHttpError, kTransportError, kTimeout };
enum class Residency { kUnknown, kResident, kHost, kPeer };  // X-Torpor-Swap

// One request, as it went.
struct Record {
  std::size_t function = 0;
  bool warm_up = false;
  Outcome outcome = Outcome::kRight;
  int http_status = 0;  // 0: there was no answer
  Duration lag{};       // intended -> sent: the generator's own lateness
  Duration latency{};   // intended -> answered, or given up
  int gpu = -1;         // -1: the answer did not say; likewise unset times below are 0
  Residency residency = Residency::kUnknown;
  Duration queue{};
  Duration swap{};
  Duration run{};
};

// Of a set of durations; zeros when there are none. Percentiles are the nearest rank's.
struct Distribution {
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

struct FunctionReport {
  std::string name;
  Duration objective{};
  Totals totals;
  // From the intended time, of the requests that were answered or timed out.
  Distribution latency;
  double queue_ms = 0, swap_ms = 0, run_ms = 0;  // means over the answers that told
};

struct GpuReport {
  std::uint64_t requests = 0;
  double load = 0;  // part of the time in which it swapped or ran a request
};

struct Report {
  Totals totals;   // measured requests
  Totals warm_up;  // those before them
  Distribution latency;
  Distribution lag;
  std::map<int, GpuReport> gpus;
  std::vector<FunctionReport> functions;

  // No error and no wrong answer, in the warm-up neither.
  bool Clean() const;
};

struct ReportedFunction {
  std::string name;
  Duration objective{};
};

// `length` is that of the measured part. Records may come in any order.
Report Summarise(const std::vector<ReportedFunction>& functions, const std::vector<Record>& records,
                 Duration length);

// report.json, and the table for people.
std::string ReportJson(const Report& report);
std::string ReportTable(const Report& report);

}  // namespace torpor::loadgen
