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
};

// What a run's caller may want to hear of; called on the run's thread.
struct LoadObserver {
  std::function<void(const Progress&)> on_progress;  // once a second, and at the end
  // One line for each request that failed or had a wrong answer.
  std::function<void(const std::string&)> on_failure;
};

struct LoadResult {
  std::vector<Record> records;  // in the order in which the requests ended
};

// Sends the workload's warm-up and measured load, each request at its intended time whatever
// the others do, and waits for all answers: at most `workload.timeout` after the last. The
// function's exchanges are taken in turn.
LoadResult RunLoad(const Workload& workload, const LoadObserver& observer);

Report MakeReport(const Workload& workload, const LoadResult& result);

}  // namespace torpor::loadgen
