#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tools/loadgen/report.h"
#include "tools/loadgen/workload.h"

namespace torpor::loadgen {

// The state of a run, for a line of progress.
struct Progress {
  Duration elapsed{};
  std::size_t sent = 0, planned = 0, under_way = 0;
  std::size_t errors = 0, wrong_answers = 0;
  std::size_t late = 0;  // sent more than kNoticeableLag after the intended time
  bool is_last = false;
};

// Receives a run's events, on the run's thread. Either function may be null.
struct LoadObserver {
  std::function<void(const Progress&)> on_progress;  // once a second, and at the end
  // Receives a line for each failed request and each wrong answer.
  std::function<void(const std::string&)> on_failure;
};

// Limits beyond which the generator gives up, as the load is no longer the requested load. 0
// disables a limit.
struct LoadLimits {
  Duration lag{};               // largest delay of a request after its intended time
  std::size_t connections = 0;  // largest number of requests under way, each on a connection
};

// The records of a run.
struct LoadResult {
  std::vector<Record> records;  // in the order of the requests' ends
  Duration measured{};          // length of the measured part
  std::string gave_up;          // the reason for giving up; empty after a complete run
};

// Sends the workload's warm-up and measured load at `rates`, each request at its intended time
// (open loop), with each function's exchanges in turn. Blocks until all answers have come, at most
// `workload.timeout` after the last request. After giving up the generator sends no more requests
// and waits for the answers under way.
LoadResult RunLoad(const Workload& workload, const workload::MinuteRates& rates,
                   const LoadLimits& limits, const LoadObserver& observer);

// Summarises a run, with the workload's objectives. Marks the report invalid after giving up.
Report MakeReport(const Workload& workload, const LoadResult& result);

}  // namespace torpor::loadgen
