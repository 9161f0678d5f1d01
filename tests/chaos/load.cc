#include "tests/chaos/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace torpor::chaos {
namespace {

// So that 24 clients keep two cores half busy.
constexpr unsigned kLongestPauseMs = 400;
// A client's pause after a connection that was refused.
constexpr Duration kBackOff = std::chrono::milliseconds(10);

}  // namespace

Load::Load(const std::vector<std::unique_ptr<Function>>& functions, unsigned seed)
    : functions_(functions), last_kill_(SteadyClock().Now()), answered_(functions.size()) {
  clients_.reserve(functions.size());
  for (std::size_t i = 0; i < functions.size(); ++i) {
    clients_.emplace_back([this, i, seed] { Serve(i, seed + static_cast<unsigned>(i)); });
  }
}

Load::~Load() {
  {
    const MutexLock lock(&mutex_);
    is_over_ = true;
    changed_.SignalAll();
  }
  for (std::thread& client : clients_) client.join();
}

void Load::Serve(std::size_t index, unsigned seed) {
  Function& function = *functions_[index];
  std::mt19937 random(seed);
  const auto start = [&] {
    const absl::Status started = function.Start();
    if (!started.ok()) AddFault(started.ToString());
  };
  start();
  while (!is_over()) {
    if (function.is_killed()) {
      start();
      continue;
    }
    const Outcome outcome = function.Ask();
    Note(index, outcome);
    if (outcome.kind == Outcome::Kind::kUnanswered || outcome.kind == Outcome::Kind::kRefused) {
      PauseWhile(kBackOff, [] { return true; });
      continue;
    }
    Pause(index, std::chrono::milliseconds(random() % kLongestPauseMs));
  }
}

void Load::Note(std::size_t index, const Outcome& outcome) {
  const MutexLock lock(&mutex_);
  switch (outcome.kind) {
    case Outcome::Kind::kRight:
      NoteAnswer(index, outcome);
      break;
    case Outcome::Kind::kExcused:
      ++counts_.excused;
      break;
    case Outcome::Kind::kUnanswered:
    case Outcome::Kind::kRefused:
      if (!IsRouterGone(index)) {
        NoteFault(index, outcome);
      } else {
        ++(outcome.kind == Outcome::Kind::kRefused ? counts_.refused : counts_.unanswered);
      }
      break;
    case Outcome::Kind::kWrong:
    case Outcome::Kind::kFailed:
      NoteFault(index, outcome);
      break;
  }
  changed_.SignalAll();
}

void Load::NoteAnswer(std::size_t index, const Outcome& outcome) {
  ++counts_.right;
  if (outcome.was_done) ++counts_.done;
  answered_[index] = outcome.sent;
  delays_.OnAnswer(index, outcome.wanted, outcome.answered);
}

void Load::NoteFault(std::size_t index, const Outcome& outcome) {
  ++(outcome.kind == Outcome::Kind::kWrong ? counts_.wrong : counts_.failed);
  faults_.push_back(outcome.what + "\n" + functions_[index]->Report());
  is_over_ = true;
}

void Load::AddFault(const std::string& what) {
  const MutexLock lock(&mutex_);
  faults_.push_back(what);
  is_over_ = true;
  changed_.SignalAll();
}

void Load::Pause(std::size_t index, Duration length) {
  PauseWhile(length, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return HasAnswered(index) && !functions_[index]->is_killed();
  });
}

void Load::PauseWhile(Duration length, const std::function<bool()>& goes_on) {
  const TimePoint end = SteadyClock().Now() + length;
  const MutexLock lock(&mutex_);
  while (!is_over_ && goes_on()) {
    const Duration left = end - SteadyClock().Now();
    if (left <= Duration::zero()) return;
    mutex_.WaitFor(changed_, absl::FromChrono(left));
  }
}

void Load::OnKill(Victim victim) {
  const MutexLock lock(&mutex_);
  last_kill_ = SteadyClock().Now();
  if (victim == Victim::kRouter) last_router_kill_ = last_kill_;
  delays_.OnKill(victim, last_kill_);
  changed_.SignalAll();
}

void Load::OnRecovery() {
  const MutexLock lock(&mutex_);
  delays_.OnRecovery(SteadyClock().Now());
}

absl::Status Load::AwaitAnswers(Duration patience) {
  const TimePoint give_up = SteadyClock().Now() + patience;
  const MutexLock lock(&mutex_);
  while (faults_.empty()) {
    const std::string missing = Missing();
    if (missing.empty()) return absl::OkStatus();
    const Duration left = give_up - SteadyClock().Now();
    if (left <= Duration::zero()) {
      return absl::DeadlineExceededError(fmt::format(
          "{:.0f} s after a kill these have not answered: {}", ToSeconds(patience), missing));
    }
    mutex_.WaitFor(changed_, absl::FromChrono(left));
  }
  return absl::AbortedError("there is a fault");
}

bool Load::HasAnswered(std::size_t index) const { return answered_[index] > last_kill_; }

bool Load::IsRouterGone(std::size_t index) const { return answered_[index] < last_router_kill_; }

std::string Load::Missing() const {
  std::string missing;
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    if (HasAnswered(i)) continue;
    absl::StrAppend(&missing, missing.empty() ? "" : " ", functions_[i]->name());
  }
  return missing;
}

bool Load::is_over() const {
  const MutexLock lock(&mutex_);
  return is_over_;
}

bool Load::has_fault() const {
  const MutexLock lock(&mutex_);
  return !faults_.empty();
}

std::vector<std::string> Load::faults() const {
  const MutexLock lock(&mutex_);
  return faults_;
}

RequestCounts Load::counts() const {
  const MutexLock lock(&mutex_);
  return counts_;
}

Delays Load::delays() const {
  const MutexLock lock(&mutex_);
  return delays_;
}

}  // namespace torpor::chaos
