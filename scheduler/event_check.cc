#include "scheduler/event_check.h"

#include <algorithm>
#include <iterator>
#include <variant>

namespace torpor::scheduler {
namespace {

// Nine years: a multiple of it by the GPUs of an instance is a duration still.
constexpr Duration kLongest{std::int64_t{1} << 58};
constexpr TimePoint kLast{kLongest};
constexpr Bytes kMaxBytes = Bytes{1} << 60;
constexpr int kMaxInFlight = 1'000'000;
constexpr int kHighestPriority = 1'000'000;

bool IsDuration(Duration duration) { return Duration::zero() <= duration && duration <= kLongest; }
bool IsTime(TimePoint time) { return TimePoint() <= time && time <= kLast; }

// Names the unknown or impossible part of an event.
class Objection {
 public:
  Objection(const Scheduler& scheduler, TimePoint when)
      : scheduler_(scheduler), node_(scheduler.node()), when_(when) {}

  std::string operator()(const ExecutorUp& event) const {
    if (event.gpu.value < 0) return "the GPU's index is below 0";
    const bool is_its_own = std::count(event.sources.begin(), event.sources.end(), event.gpu) > 0;
    if (is_its_own) return "the GPU is a source of its own images";
    return event.capacity <= kMaxBytes ? "" : "the capacity is too large";
  }
  std::string operator()(const ExecutorDown&) const { return {}; }
  std::string operator()(const ImagesLost& event) const { return OfInstances(event.instances); }
  std::string operator()(const InstancesServed& event) const {
    return OfInstances(event.instances);
  }
  std::string operator()(const ImagesUnwanted& event) const { return OfInstances(event.instances); }
  std::string operator()(const TenantSet& event) const {
    const bool is_weight = kMinWeight <= event.weight && event.weight <= kMaxWeight;
    return is_weight ? "" : "the weight is too small or too large";
  }
  std::string operator()(const FunctionSet& event) const {
    if (!event.function) return "the function has no name";
    const auto& [deadline, percentile] = event.objective;
    if (deadline != Duration::max() && !IsDuration(deadline)) return "the deadline is no duration";
    if (!(percentile > 0 && percentile <= kMaxPercentile)) {
      return "the percentile is not above 0 and at most 0.9999";
    }
    if (!IsDuration(event.keep_alive)) return "keep_alive is no duration";
    const bool is_priority =
        -kHighestPriority <= event.priority && event.priority <= kHighestPriority;
    return is_priority ? "" : "the priority is beyond a million";
  }
  std::string operator()(const InstanceAdded& event) const {
    if (std::ssize(event.secondary_shards) > kMaxSecondaryShards) {
      return "the instance has too many secondary_shards";
    }
    if (event.max_in_flight < 1 || event.max_in_flight > kMaxInFlight) {
      return "max_in_flight is not from 1 to a million";
    }
    std::set<InstanceId> shards(event.secondary_shards.begin(), event.secondary_shards.end());
    shards.insert(event.instance);
    if (shards.size() <= event.secondary_shards.size()) return "the instance has a shard twice";
    for (const InstanceId shard : shards) {
      if (!shard) return "the instance or a secondary shard has no name";
      if (IsKnown(shard)) return "the instance is there already";
    }
    return {};
  }
  std::string operator()(const HealthChanged& event) const { return OfInstance(event.instance); }
  std::string operator()(const InstanceRemoved& event) const {
    std::string unknown = OfInstance(event.instance);
    if (!unknown.empty()) return unknown;
    return scheduler_.MayRemove(event.instance) ? "" : "the instance is in use";
  }
  std::string operator()(const FunctionRemoved& event) const {
    const auto function = node_.functions.find(event.function);
    if (function == node_.functions.end()) return "there is no such function";
    return function->second.instances.empty() ? "" : "the function has instances";
  }
  std::string operator()(const RequestArrived& event) const {
    if (!event.request) return "the request has no name";
    // With its arrival, a request that waits, runs or was lost comes again.
    const bool is_new = node_.requests.count(event.request) == 0;
    if (!is_new && !event.arrival) return "the request is there already";
    const bool is_deadline = event.deadline == TimePoint::max() || IsTime(event.deadline);
    if (!is_deadline) return "the deadline is no time";
    const bool is_arrival =
        !event.arrival || (TimePoint() <= *event.arrival && *event.arrival <= when_);
    if (!is_arrival) return "the arrival is no time until now";
    if (event.instance) return OfInstance(event.instance);
    const auto function = node_.functions.find(event.function);
    const bool has_instance =
        function != node_.functions.end() && !function->second.instances.empty();
    return has_instance ? "" : "the function has no instance";
  }
  std::string operator()(const RequestGone&) const { return {}; }
  std::string operator()(const GrowthWanted& event) const {
    if (event.bytes > kMaxBytes) return "the growth is too large";
    return OfShard(event.instance);
  }
  std::string operator()(const LeaseEnded& event) const { return OfInstance(event.instance); }
  std::string operator()(const LoadWanted& event) const { return OfInstance(event.instance); }
  std::string operator()(const EvictionWanted& event) const { return OfInstance(event.instance); }
  std::string operator()(const PinChanged& event) const { return OfInstance(event.instance); }
  std::string operator()(const TimePassed&) const { return {}; }
  template <typename OfImage>
  std::string operator()(const OfImage& event) const {
    return OfShard(event.instance);
  }

 private:
  bool IsKnown(InstanceId id) const { return node_.instances.count(id) > 0; }
  std::string OfShard(InstanceId id) const {
    return IsKnown(id) ? "" : "there is no such instance";
  }
  std::string OfInstance(InstanceId id) const {
    const auto instance = node_.instances.find(id);
    if (instance == node_.instances.end()) return "there is no such instance";
    return instance->second.lead == id ? "" : "the instance is a secondary shard";
  }
  std::string OfInstances(const std::vector<InstanceId>& ids) const {
    for (const InstanceId id : ids) {
      if (std::string objection = OfInstance(id); !objection.empty()) return objection;
    }
    return "";
  }

  const Scheduler& scheduler_;
  const NodeState& node_;
  const TimePoint when_;
};

}  // namespace

std::string WhatIsWrong(const SchedulerOptions& options) {
  for (const Duration duration :
       {options.implicit_quantum_for_request, options.implicit_quantum, options.idle_write_back}) {
    if (!IsDuration(duration)) return "an option is no duration";
  }
  const PolicyConstants& constants = options.constants;
  if (!(constants.alpha_start >= 0 && constants.alpha_start <= 1)) {
    return "alpha_start is not from 0 to 1";
  }
  if (!(constants.heavy_ratio >= 1 && constants.heavy_ratio <= kMaxHeavyRatio)) {
    return "heavy_ratio is not from 1 to a thousand";
  }
  const bool is_period =
      kMinAlphaPeriod <= constants.alpha_period && IsDuration(constants.alpha_period);
  if (!is_period) return "alpha_period is too short or too long";
  const bool is_window =
      kMinOutcomeWindow <= constants.outcome_window && IsDuration(constants.outcome_window);
  if (!is_window) return "outcome_window is too short or too long";
  return {};
}

std::string WhatIsWrong(const Event& event, TimePoint when, const Scheduler& scheduler) {
  if (!IsTime(when)) return "the time is below 0 or above nine years";
  return std::visit(Objection(scheduler, when), event);
}

}  // namespace torpor::scheduler
