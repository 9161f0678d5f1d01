#include "scheduler/replay.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "scheduler/event_log.h"
#include "scheduler/setup.h"

namespace torpor::scheduler {
namespace {

// What an event names that there is not; a scheduler is only told of what there is.
class MissingName {
 public:
  explicit MissingName(const NodeState& node) : node_(node) {}

  std::string operator()(const ExecutorUp&) const { return {}; }
  std::string operator()(const ExecutorDown&) const { return {}; }
  std::string operator()(const TenantSet& event) const {
    return event.weight > 0 ? "" : "the weight is not above 0";
  }
  std::string operator()(const FunctionSet& event) const {
    const double percentile = event.objective.percentile;
    if (!(percentile > 0 && percentile <= kMostPercentile)) {
      return "the percentile is not above 0 and at most 0.9999";
    }
    constexpr int kHighestPriority = 1'000'000;
    const bool is_priority =
        -kHighestPriority <= event.priority && event.priority <= kHighestPriority;
    return is_priority ? "" : "the priority is beyond a million";
  }
  std::string operator()(const RequestGone&) const { return {}; }
  std::string operator()(const TimePassed&) const { return {}; }
  std::string operator()(const InstanceAdded& event) const {
    const bool is_new =
        !IsKnown(event.instance) && std::none_of(event.companions.begin(), event.companions.end(),
                                                 [this](InstanceId id) { return IsKnown(id); });
    return is_new ? "" : "the instance is there already";
  }
  std::string operator()(const RequestArrived& event) const {
    if (IsWaiting(event.request) || (!event.arrival && node_.requests.count(event.request) > 0)) {
      return "the request is there already";
    }
    if (event.instance) return Of(event.instance);
    const auto function = node_.functions.find(event.function);
    const bool has_instance =
        function != node_.functions.end() && !function->second.instances.empty();
    return has_instance ? "" : "the function has no instance";
  }
  template <typename OfInstance>
  std::string operator()(const OfInstance& event) const {
    return Of(event.instance);
  }

 private:
  bool IsWaiting(RequestId id) const {
    const auto request = node_.requests.find(id);
    if (request == node_.requests.end()) return false;
    return node_.instances.at(request->second.instance).waiting.count(request->second.turn) > 0;
  }
  bool IsKnown(InstanceId id) const { return node_.instances.count(id) > 0; }
  std::string Of(InstanceId id) const { return IsKnown(id) ? "" : "there is no such instance"; }

  const NodeState& node_;
};

class Replayer {
 public:
  ReplayOutcome Run(std::istream& log) && {
    std::string line;
    while (IsGoingOn() && std::getline(log, line)) {
      ++line_;
      if (!scheduler_) {
        TakeHeader(line);
      } else if (!decided_.empty() || IsActionLine(line)) {
        TakeAction(line);
      } else {
        TakeEvent(line);
      }
    }
    if (!IsGoingOn()) return std::move(outcome_);
    ++line_;
    if (!scheduler_) Fail("the log is empty");
    if (!decided_.empty()) Differ("");
    return std::move(outcome_);
  }

 private:
  bool IsGoingOn() const { return outcome_.is_same(); }

  void TakeHeader(const std::string& line) {
    const Decoded<EventLogHeader> header = DecodeHeader(line);
    if (!header.value) return Fail(header.error);
    std::optional<Setup> setup = MakeSetup(header.value->policy, header.value->seed);
    if (!setup) return Fail("there is no policy \"" + header.value->policy + '"');
    scheduler_.emplace(std::move(setup->policies), header.value->options);
  }

  void TakeEvent(const std::string& line) {
    const Decoded<LoggedEvent> logged = DecodeEvent(line);
    if (!logged.value) return Fail(logged.error);
    const auto& [when, event] = *logged.value;
    const std::string missing = std::visit(MissingName(scheduler_->node()), event);
    if (!missing.empty()) return Fail(missing);
    ++outcome_.events;
    for (const Action& action : scheduler_->OnEvent(event, when)) {
      decided_.push_back(Encode(action, when));
    }
  }

  void TakeAction(const std::string& line) {
    if (decided_.empty() || decided_.front() != line) return Differ(line);
    decided_.pop_front();
    ++outcome_.actions;
  }

  void Fail(const std::string& what) {
    outcome_.error = "line " + std::to_string(line_) + ": " + what;
  }
  void Differ(const std::string& logged) {
    outcome_.difference = {line_, logged, decided_.empty() ? "" : decided_.front()};
  }

  std::optional<Scheduler> scheduler_;
  std::deque<std::string> decided_;  // and not compared yet
  std::uint64_t line_ = 0;
  ReplayOutcome outcome_;
};

}  // namespace

ReplayOutcome Replay(std::istream& log) { return Replayer().Run(log); }

}  // namespace torpor::scheduler
