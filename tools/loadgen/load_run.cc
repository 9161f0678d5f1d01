#include "tools/loadgen/load_run.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tools/loadgen/http_client.h"

namespace torpor::loadgen {
namespace {

// Requests are not sent before this, so that the first is not late already.
constexpr Duration kLead = std::chrono::milliseconds(50);

const std::string& Header(const HttpAnswer& answer, const char* name) {
  static const std::string none;
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? none : found->second;
}

double Number(const std::string& text, double otherwise) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && std::isfinite(value) ? value : otherwise;
}

Duration Milliseconds(const std::string& text) {
  return Duration(std::llround(Number(text, 0) * 1e6));
}

Residency ParseResidency(const std::string& text) {
  if (text == "resident") return Residency::kResident;
  if (text == "host") return Residency::kHost;
  if (text == "peer") return Residency::kPeer;
  return Residency::kUnknown;
}

class Run {
 public:
  Run(const Workload& workload, const LoadObserver& observer)
      : workload_(workload), observer_(observer), turns_(workload.functions.size()) {
    std::vector<double> rates;
    for (const FunctionLoad& function : workload.functions) rates.push_back(function.rate_per_s);
    schedule_ =
        MakeSchedule(workload.arrivals, rates, workload.warm_up + workload.duration, workload.seed);
  }

  LoadResult Go() {
    if (schedule_.empty()) return {};
    start_ = clock_.Now() + kLead;
    ScheduleNext();
    ScheduleProgress(1);
    client_.Run();
    ReportProgress();
    return std::move(result_);
  }

 private:
  void ScheduleNext() {
    if (next_ == schedule_.size()) return;
    client_.CallAt(start_ + schedule_[next_].at, [this] {
      // Also those whose time came meanwhile: a late generator must not thin the load.
      while (next_ < schedule_.size() && start_ + schedule_[next_].at <= clock_.Now()) {
        Send(schedule_[next_++]);
      }
      ScheduleNext();
    });
  }

  void ScheduleProgress(int second) {
    client_.CallAt(start_ + std::chrono::seconds(second), [this, second] {
      ReportProgress();
      ScheduleProgress(second + 1);
    });
  }

  void Send(const Arrival& arrival) {
    const FunctionLoad& function = workload_.functions[arrival.function];
    const Exchange& exchange =
        function.exchanges[turns_[arrival.function]++ % function.exchanges.size()];
    const TimePoint intended = start_ + arrival.at;
    Record record;
    record.function = arrival.function;
    record.warm_up = arrival.at < workload_.warm_up;
    record.lag = clock_.Now() - intended;
    client_.Post(function.host, function.path, exchange.body, intended + workload_.timeout,
                 [this, record, intended, &exchange](const HttpAnswer& answer) {
                   Finish(record, intended, exchange, answer);
                 });
  }

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
    if (result_.records.size() == schedule_.size()) client_.Stop();
  }

  // Says what is wrong, or nothing.
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

  void ReportProgress() const {
    if (!observer_.on_progress) return;
    observer_.on_progress({.elapsed = clock_.Now() - start_,
                           .sent = next_,
                           .planned = schedule_.size(),
                           .under_way = next_ - result_.records.size(),
                           .errors = errors_,
                           .wrong_answers = wrong_answers_});
  }

  const Workload& workload_;
  const LoadObserver& observer_;
  const SteadyClock clock_;
  HttpClient client_;
  std::vector<Arrival> schedule_;
  std::vector<std::size_t> turns_;  // by function: requests sent
  TimePoint start_;
  std::size_t next_ = 0;
  std::size_t errors_ = 0;
  std::size_t wrong_answers_ = 0;
  LoadResult result_;
};

}  // namespace

LoadResult RunLoad(const Workload& workload, const LoadObserver& observer) {
  return Run(workload, observer).Go();
}

Report MakeReport(const Workload& workload, const LoadResult& result) {
  std::vector<ReportedFunction> functions;
  for (const FunctionLoad& function : workload.functions) {
    functions.push_back({function.name, function.objective});
  }
  return Summarise(functions, result.records, workload.duration);
}

}  // namespace torpor::loadgen
