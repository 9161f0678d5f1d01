#include "server/routing/router_keeper.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/poll_timeout.h"
#include "base/thread_name.h"
#include "server/supervisor/process_record.h"

namespace torpor::server {

RouterKeeper::RouterKeeper(Options options)
    : options_(std::move(options)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      pauses_(options_.pauses) {
  {
    MutexLock lock(&mutex_);
    next_start_ = clock_.Now();
    Adopt();
  }
  thread_ = std::thread([this] { Run(); });
}

RouterKeeper::~RouterKeeper() { Leave(); }

bool RouterKeeper::IsKept(pid_t pid) {
  MutexLock lock(&mutex_);
  return process_ && process_->pid() == pid;
}

void RouterKeeper::OnAttached(pid_t pid) {
  MutexLock lock(&mutex_);
  if (!process_ || process_->pid() != pid) return;
  is_attached_ = true;
  kill_at_ = TimePoint::max();
  changed_.SignalAll();
}

void RouterKeeper::OnAlive(pid_t pid) {
  MutexLock lock(&mutex_);
  if (phase_ != Phase::kKeeping || !process_ || process_->pid() != pid) return;
  const bool is_first = silent_at_ == TimePoint::max();
  silent_at_ = clock_.Now() + options_.silence;
  is_doubted_ = false;
  if (is_first) eventfd_write(wake_.get(), 1);
}

absl::Status RouterKeeper::WaitUntilAttached(Duration patience) {
  MutexLock lock(&mutex_);
  const TimePoint until = clock_.Now() + patience;
  while (!is_attached_) {
    const Duration left = until - clock_.Now();
    if (pauses_.failures() >= kMaxFailures || left <= Duration::zero()) {
      return absl::UnavailableError("torpor-router does not serve; its own message is in the log");
    }
    mutex_.WaitFor(changed_, absl::FromChrono(left));
  }
  return absl::OkStatus();
}

void RouterKeeper::Stop(Duration patience) {
  {
    MutexLock lock(&mutex_);
    if (phase_ == Phase::kKeeping) {
      phase_ = Phase::kStopping;
      kill_at_ = clock_.Now() + patience;
      silent_at_ = TimePoint::max();
      if (process_) process_->Signal(SIGTERM);
    }
  }
  EndThread();
}

void RouterKeeper::Leave() {
  {
    MutexLock lock(&mutex_);
    if (phase_ == Phase::kKeeping) phase_ = Phase::kLeft;
    if (process_) process_->Leave();
  }
  EndThread();
}

void RouterKeeper::EndThread() {
  eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

void RouterKeeper::Run() {
  NameThread("router-keeper");
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (phase_ == Phase::kLeft || (phase_ == Phase::kStopping && !process_)) return;
      StartDue();
    }
    Wait();
  }
}

void RouterKeeper::Wait() {
  std::array<pollfd, 2> polled = {pollfd{wake_.get(), POLLIN, 0}, pollfd{-1, POLLIN, 0}};
  TimePoint until = TimePoint::max();
  {
    MutexLock lock(&mutex_);
    if (process_) polled[1].fd = process_->descriptor();
    until = process_ ? std::min(kill_at_, silent_at_) : next_start_;
  }
  poll(polled.data(), polled.size(), PollTimeout(until, clock_.Now()));
  eventfd_t ignored = 0;
  eventfd_read(wake_.get(), &ignored);
  MutexLock lock(&mutex_);
  if (!process_) return;
  if (polled[1].revents != 0) return NoteEnd();
  if (clock_.Now() >= silent_at_) return NoteSilence();
  if (clock_.Now() < kill_at_) return;
  spdlog::warn("router {} {}; it is killed", process_->pid(),
               phase_ == Phase::kStopping ? "does not end" : "does not connect");
  process_->Kill();
  kill_at_ = TimePoint::max();  // nothing survives it
}

void RouterKeeper::NoteSilence() {
  if (!std::exchange(is_doubted_, true)) {
    silent_at_ = clock_.Now() + options_.silence / 5;
    return;
  }
  spdlog::error("router {} hangs: its loop has not turned for {:.0f} s; it is killed",
                process_->pid(), ToSeconds(options_.silence));
  process_->Kill();
  silent_at_ = TimePoint::max();
}

void RouterKeeper::Adopt() {
  const std::optional<ProcessRecord> record = ReadProcessRecord(options_.record_path);
  if (record) process_ = ChildProcess::Adopt(record->process);
  if (!process_) return;
  started_ = clock_.Now();
  kill_at_ = started_ + options_.adoption_patience;
  spdlog::info("router {} runs on; it is taken over", process_->pid());
}

void RouterKeeper::StartDue() {
  if (phase_ != Phase::kKeeping || process_ || next_start_ > clock_.Now()) return;
  started_ = clock_.Now();
  ProcessCommand command = options_.command();
  // First: a router that nobody knows of would hold the addresses.
  command.before_run = [this](pid_t pid) { WriteDown(pid); };
  absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(command);
  if (!process.ok()) {
    spdlog::error("no router: {}", process.status().ToString());
    unlink(options_.record_path.c_str());
    next_start_ = started_ + pauses_.Next({});
    return changed_.SignalAll();
  }
  process_ = *std::move(process);
  kill_at_ = started_ + options_.start_patience;
}

void RouterKeeper::WriteDown(pid_t pid) const {
  const absl::Status written = WriteProcessRecord(
      options_.record_path, {IdentityOf(pid).value_or(ProcessIdentity{.pid = pid})});
  if (written.ok()) return;
  spdlog::error("the next torpord will not know of its router: {}", written.ToString());
}

void RouterKeeper::NoteEnd() {
  std::string why;
  process_->HasEnded(why);
  const TimePoint now = clock_.Now();
  next_start_ = now + pauses_.Next(now - started_);
  if (phase_ == Phase::kKeeping) spdlog::warn("router {} has ended: {}", process_->pid(), why);
  process_.reset();
  is_attached_ = false;
  silent_at_ = TimePoint::max();
  is_doubted_ = false;
  unlink(options_.record_path.c_str());
  changed_.SignalAll();
}

}  // namespace torpor::server
