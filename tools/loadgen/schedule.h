#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "tools/loadgen/workload.h"
#include "tools/workload/arrivals.h"
#include "tools/workload/rates.h"

namespace torpor::loadgen {

// A request and its intended time.
struct PlannedRequest {
  Duration at{};  // from the beginning of the measured part; below 0 in the warm-up
  std::size_t function = 0;
};

// The requests of a run in order of time, drawn on demand. The warm-up has the rates of the first
// minute; the measured requests do not depend on the warm-up's length. Not thread-safe.
class Schedule {
 public:
  Schedule(const Workload& workload, const workload::MinuteRates& rates);

  // Returns the next request, nullopt at the end.
  std::optional<PlannedRequest> Next();

 private:
  Duration warm_up_;
  std::unique_ptr<workload::ArrivalStream> warm_up_arrivals_;
  std::unique_ptr<workload::ArrivalStream> arrivals_;
};

// Returns the number of requests of a schedule.
std::size_t CountRequests(const Workload& workload, const workload::MinuteRates& rates);

// Returns the workload's duration; without a duration the length of the rate file, or half a
// minute.
Duration MeasuredDuration(const Workload& workload, const workload::MinuteRates& rates);

}  // namespace torpor::loadgen
