#include "tools/loadgen/schedule.h"

#include <vector>

namespace torpor::loadgen {
namespace {

workload::MinuteRates FirstMinute(const workload::MinuteRates& rates) {
  std::vector<double> first(rates.functions());
  for (std::size_t function = 0; function < first.size(); ++function) {
    first[function] = rates.At(function, 0);
  }
  return workload::ConstantRates(first);
}

}  // namespace

Schedule::Schedule(const Workload& workload, const workload::MinuteRates& rates)
    : warm_up_(workload.warm_up),
      // The warm-up draws from a stream of its own.
      warm_up_arrivals_(
          MakeArrivals(workload.arrivals, FirstMinute(rates), warm_up_, ~workload.seed)),
      arrivals_(MakeArrivals(workload.arrivals, rates, MeasuredDuration(workload, rates),
                             workload.seed)) {}

std::optional<PlannedRequest> Schedule::Next() {
  if (warm_up_arrivals_ != nullptr) {
    if (const auto arrival = warm_up_arrivals_->Next()) {
      return PlannedRequest{arrival->at - warm_up_, arrival->function};
    }
    warm_up_arrivals_.reset();
  }
  const auto arrival = arrivals_->Next();
  if (!arrival) return std::nullopt;
  return PlannedRequest{arrival->at, arrival->function};
}

std::size_t CountRequests(const Workload& workload, const workload::MinuteRates& rates) {
  Schedule schedule(workload, rates);
  std::size_t requests = 0;
  while (schedule.Next()) ++requests;
  return requests;
}

Duration MeasuredDuration(const Workload& workload, const workload::MinuteRates& rates) {
  if (workload.duration) return *workload.duration;
  if (workload.rates.UsesOwnRates()) return kDefaultDuration;
  return std::chrono::minutes(rates.minutes());
}

}  // namespace torpor::loadgen
