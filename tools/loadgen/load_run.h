#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tools/loadgen/report.h"
#include "tools/loadgen/workload.h"

namespace torpor::loadgen {

struct Progress {
  Duration elapsed{};
  std::size_t sent = 0, planned = 0, under_way = 0;
  std::size_t errors = 0, wrong_answers = 0;
  std::size_t late = 0;  // sent over kNoticeableLag after their time
  bool is_last = false;
};

// What a run's caller may want to hear of; called on the run's thread.
struct LoadObserver {
  std::function<void(const Progress&)> on_progress;  // once a second, and at the end
  // One line for each request that failed or had a wrong answer.
  std::function<void(const std::string&)> on_failure;
};

// At which the generator gives up, since it no longer makes the load that it was asked for; 0 is
// never.
struct LoadLimits {
  Duration lag{};               // a request would be sent later than this after its time
  std::size_t connections = 0;  // more requests would wait for answers at once, each on its own
};

struct LoadResult {
  std::vector<Record> records;  // in the order in which the requests ended
  Duration measured{};          // how long the measured part was
  std::string gave_up;          // why the generator gave up; empty if it did not
};

// Sends the workload's warm-up and measured load at `rates`, each request at its intended time
// whatever the others do, and waits for all answers: at most `workload.timeout` after the last.
// The function's exchanges are taken in turn. A generator that gives up sends no more and waits
// for the answers under way.
LoadResult RunLoad(const Workload& workload, const workload::MinuteRates& rates,
                   const LoadLimits& limits, const LoadObserver& observer);

Report MakeReport(const Workload& workload, const LoadResult& result);

}  // namespace torpor::loadgen
