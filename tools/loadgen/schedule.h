#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "tools/loadgen/workload.h"
#include "tools/workload/arrivals.h"
#include "tools/workload/rates.h"

namespace torpor::loadgen {

struct PlannedRequest {
  Duration at{};  // from the begin of the measured part; before 0 is the warm-up
  std::size_t function = 0;
};

// The requests of a run in order of time, drawn as they are asked for. The warm-up has the rates of
// the first minute; the measured requests are the same whatever its length.
class Schedule {
 public:
  Schedule(const Workload& workload, const workload::MinuteRates& rates);

  // Nothing at the end.
  std::optional<PlannedRequest> Next();

 private:
  Duration warm_up_;
  std::unique_ptr<workload::ArrivalStream> warm_up_arrivals_;
  std::unique_ptr<workload::ArrivalStream> arrivals_;
};

// How many requests a schedule of these has.
std::size_t CountRequests(const Workload& workload, const workload::MinuteRates& rates);

// What the workload says, or else a rate file's minutes, or half a minute.
Duration MeasuredDuration(const Workload& workload, const workload::MinuteRates& rates);

}  // namespace torpor::loadgen
