#include "scheduler/replay.h"

#include <deque>
#include <utility>

#include "scheduler/event_check.h"
#include "scheduler/event_log.h"
#include "scheduler/setup.h"

namespace torpor::scheduler {
namespace {

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
    const std::string wrong = WhatIsWrong(header.value->options);
    if (!wrong.empty()) return Fail(wrong);
    std::optional<Setup> setup =
        MakeSetup(header.value->policy, header.value->seed, header.value->options.constants);
    if (!setup) return Fail("there is no policy \"" + header.value->policy + '"');
    scheduler_.emplace(std::move(setup->policies), header.value->options);
  }

  void TakeEvent(const std::string& line) {
    const Decoded<LoggedEvent> logged = DecodeEvent(line);
    if (!logged.value) return Fail(logged.error);
    const auto& [when, event] = *logged.value;
    if (when < last_) return Fail("the time goes back");
    last_ = when;
    const std::string wrong = WhatIsWrong(event, when, *scheduler_);
    if (!wrong.empty()) return Fail(wrong);
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
  TimePoint last_{};
  ReplayOutcome outcome_;
};

}  // namespace

ReplayOutcome Replay(std::istream& log) { return Replayer().Run(log); }

}  // namespace torpor::scheduler
