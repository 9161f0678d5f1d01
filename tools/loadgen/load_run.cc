#include "tools/loadgen/load_run.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/loadgen/http_client.h"
#include "tools/loadgen/schedule.h"

namespace torpor::loadgen {
namespace {

// Time from the start of a run to the first request, so that the first request is not late.
constexpr Duration kLead = std::chrono::milliseconds(50);

// Returns a header field by lower-case name; empty if absent.
const std::string& Header(const HttpAnswer& answer, const char* name) {
  static const std::string none;
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? none : found->second;
}

// Returns the number at the start of `text`; `otherwise` for no number or 1e9 and more.
double Number(const std::string& text, double otherwise) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && std::abs(value) < 1e9 ? value : otherwise;
}

// Parses milliseconds; zero for text without a number.
Duration Milliseconds(const std::string& text) {
  return Duration(std::llround(Number(text, 0) * 1e6));
}

Residency ParseResidency(const std::string& text) {
  if (text == "resident") return Residency::kResident;
  if (text == "host") return Residency::kHost;
  if (text == "peer") return Residency::kPeer;
  return Residency::kUnknown;
}

// A run of a load: sends each request at the intended time and records the answer. One thread; the
// callbacks of the HTTP client run inside Go(). The references must outlive the run.
class Run {
 public:
  Run(const Workload& workload, const workload::MinuteRates& rates, const LoadLimits& limits,
      const LoadObserver& observer)
      : workload_(workload),
        limits_(limits),
        observer_(observer),
        client_(limits.connections),
        planned_(CountRequests(workload, rates)),
        schedule_(workload, rates),
        next_(schedule_.Next()),
        turns_(workload.functions.size()) {
    result_.measured = MeasuredDuration(workload, rates);
    result_.records.reserve(planned_);
  }

  // Runs the load to the last answer, or until the generator gives up. Call once.
  LoadResult Go() {
    if (!next_) return std::move(result_);
    start_ = clock_.Now() + kLead + workload_.warm_up;
    AwaitNext();
    ScheduleProgress(1);
    client_.Run();
    ReportProgress(true);
    return std::move(result_);
  }

 private:
  // Sets a timer for the next request, if any.
  void AwaitNext() {
    if (!next_) return;
    client_.CallAt(start_ + next_->at, [this] {
      // Send overdue requests, too: a late generator must not thin the load.
      while (next_ && start_ + next_->at <= clock_.Now() && CanSend()) {
        Send(*next_);
        next_ = schedule_.Next();
      }
      AwaitNext();
    });
  }

  // Returns whether the generator still keeps up with the load; gives up otherwise.
  bool CanSend() {
    const Duration lag = clock_.Now() - (start_ + next_->at);
    const std::size_t under_way = sent_ - result_.records.size();
    if (limits_.lag > Duration::zero() && lag > limits_.lag) {
      GiveUp(absl::StrFormat("it is %.1f ms late with a request", ToMilliseconds(lag)));
    } else if (limits_.connections > 0 && under_way >= limits_.connections) {
      GiveUp(absl::StrCat(under_way, " requests wait for answers, and it may open no more"));
    }
    return next_.has_value();
  }

  // Cuts the load short: sends no more requests, and ends the measured time
  // at the next request's intended time.
  void GiveUp(const std::string& reason) {
    result_.gave_up = absl::StrFormat("the generator gave up %.1f s before the end of the load: %s",
                                      ToSeconds(result_.measured - next_->at), reason);
    result_.measured = std::max(next_->at, Duration::zero());
    next_.reset();
    StopIfDone();
  }

  // Reports progress at `second` seconds after the start of the warm-up, and every second from then
  // on.
  void ScheduleProgress(int second) {
    client_.CallAt(start_ - workload_.warm_up + std::chrono::seconds(second), [this, second] {
      ReportProgress(false);
      ScheduleProgress(second + 1);
    });
  }

  // Posts the function's next exchange, in turn; the time-out counts from the intended time.
  void Send(const PlannedRequest& request) {
    const FunctionLoad& function = workload_.functions[request.function];
    const Exchange& exchange =
        function.exchanges[turns_[request.function]++ % function.exchanges.size()];
    const TimePoint intended = start_ + request.at;
    Record record;
    record.function = request.function;
    record.intended = request.at;
    record.lag = clock_.Now() - intended;
    late_ += record.lag > kNoticeableLag ? 1 : 0;
    ++sent_;
    client_.Post(function.host, function.path, exchange.body, intended + workload_.timeout,
                 [this, record, intended, &exchange](const HttpAnswer& answer) {
                   Finish(record, intended, exchange, answer);
                 });
  }

  // Completes the record of an answered or failed request.
  void Finish(Record record, TimePoint intended, const Exchange& exchange,
              const HttpAnswer& answer) {
    record.latency = clock_.Now() - intended;
    record.http_status = answer.http_status;
    record.gpu = static_cast<int>(Number(Header(answer, "x-torpor-gpu"), -1));
    record.residency = ParseResidency(Header(answer, "x-torpor-swap"));
    record.queue = Milliseconds(Header(answer, "x-torpor-queue-ms"));
    record.swap = Milliseconds(Header(answer, "x-torpor-swap-ms"));
    record.run = Milliseconds(Header(answer, "x-torpor-run-ms"));
    const std::string failure = Judge(exchange, answer, &record.outcome);
    if (!failure.empty()) {
      ++(record.outcome == Outcome::kWrongAnswer ? wrong_answers_ : errors_);
      if (observer_.on_failure) {
        observer_.on_failure(
            absl::StrCat(workload_.functions[record.function].name, ": ", failure));
      }
    }
    result_.records.push_back(record);
    StopIfDone();
  }

  // Stops the HTTP client when the load is over and every request has ended.
  void StopIfDone() {
    if (!next_ && result_.records.size() == sent_) client_.Stop();
  }

  // Returns the error of an answer, or an empty string.
  static std::string Judge(const Exchange& exchange, const HttpAnswer& answer, Outcome* outcome) {
    if (!answer.status.ok()) {
      *outcome = answer.status.code() == absl::StatusCode::kDeadlineExceeded
                     ? Outcome::kTimeout
                     : Outcome::kTransportError;
      return std::string(answer.status.message());
    }
    if (answer.http_status / 100 != 2) {
      *outcome = Outcome::kHttpError;
      return absl::StrCat("HTTP ", answer.http_status, ": ", answer.body.substr(0, 200));
    }
    const absl::Status right = CheckAnswer(exchange, answer.body);
    if (right.ok()) return "";
    *outcome = Outcome::kWrongAnswer;
    return absl::StrCat("wrong answer ", std::string(right.message()));
  }

  void ReportProgress(bool is_last) const {
    if (!observer_.on_progress) return;
    observer_.on_progress({.elapsed = clock_.Now() - (start_ - workload_.warm_up),
                           .sent = sent_,
                           .planned = planned_,
                           .under_way = sent_ - result_.records.size(),
                           .errors = errors_,
                           .wrong_answers = wrong_answers_,
                           .late = late_,
                           .is_last = is_last});
  }

  const Workload& workload_;
  const LoadLimits limits_;
  const LoadObserver& observer_;
  const SteadyClock clock_;
  HttpClient client_;
  const std::size_t planned_;
  Schedule schedule_;
  std::optional<PlannedRequest> next_;  // nullopt after the last
  std::vector<std::size_t> turns_;      // by function: requests sent
  TimePoint start_;                     // of the measured part
  std::size_t sent_ = 0;
  std::size_t late_ = 0;
  std::size_t errors_ = 0;
  std::size_t wrong_answers_ = 0;
  LoadResult result_;
};

}  // namespace

LoadResult RunLoad(const Workload& workload, const workload::MinuteRates& rates,
                   const LoadLimits& limits, const LoadObserver& observer) {
  return Run(workload, rates, limits, observer).Go();
}

Report MakeReport(const Workload& workload, const LoadResult& result) {
  std::vector<ReportedFunction> functions;
  functions.reserve(workload.functions.size());
  for (const FunctionLoad& function : workload.functions) {
    functions.push_back({function.name, function.objective, function.percentile});
  }
  Report report = Summarise(functions, result.records, result.measured);
  report.invalid_because = result.gave_up;
  return report;
}

}  // namespace torpor::loadgen
