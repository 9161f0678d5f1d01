#include "server/routing/router_keeper.h"

#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

extern "C" {
#include <sys/pidfd.h>  // of glibc 2.36: has no linkage of its own
}

#include <algorithm>
#include <array>
#include <utility>

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
  return process_.pid == pid;
}

void RouterKeeper::OnAttached(pid_t pid) {
  MutexLock lock(&mutex_);
  if (process_.pid != pid) return;
  is_attached_ = true;
  kill_at_ = TimePoint::max();
  changed_.SignalAll();
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
      Signal(SIGTERM);
    }
  }
  EndThread();
}

void RouterKeeper::Leave() {
  {
    MutexLock lock(&mutex_);
    if (phase_ == Phase::kKeeping) phase_ = Phase::kLeft;
    if (child_ != nullptr) child_->Leave();
  }
  EndThread();
}

void RouterKeeper::EndThread() {
  eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

void RouterKeeper::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (phase_ == Phase::kLeft || (phase_ == Phase::kStopping && process_.pid == 0)) return;
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
    polled[1].fd = descriptor_.get();
    until = process_.pid == 0 ? next_start_ : kill_at_;
  }
  int timeout_ms = -1;
  if (until != TimePoint::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.Now());
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
  }
  poll(polled.data(), polled.size(), timeout_ms);
  eventfd_t ignored = 0;
  eventfd_read(wake_.get(), &ignored);
  MutexLock lock(&mutex_);
  if (process_.pid == 0) return;
  if (polled[1].revents != 0) return NoteEnd();
  if (clock_.Now() < kill_at_) return;
  spdlog::warn("router {} {}; it is killed", process_.pid,
               phase_ == Phase::kStopping ? "does not end" : "does not connect");
  Signal(SIGKILL);
  kill_at_ = TimePoint::max();  // nothing survives it
}

void RouterKeeper::Adopt() {
  const auto recorded = ReadProcessRecord(options_.record_path);
  if (!recorded) return;
  descriptor_ = OpenProcess(*recorded);
  if (!descriptor_) return;
  process_ = *recorded;
  started_ = clock_.Now();
  kill_at_ = started_ + options_.adoption_patience;
  spdlog::info("router {} runs on; it is taken over", process_.pid);
}

void RouterKeeper::StartDue() {
  if (phase_ != Phase::kKeeping || process_.pid != 0 || next_start_ > clock_.Now()) return;
  started_ = clock_.Now();
  absl::StatusOr<std::unique_ptr<ChildProcess>> child = ChildProcess::Start(options_.command());
  absl::Status status = child.status();
  if (child.ok()) {
    child_ = *std::move(child);
    descriptor_.Reset(pidfd_open(child_->pid(), 0));
    process_ = IdentityOf(child_->pid()).value_or(ProcessIdentity{.pid = child_->pid()});
    kill_at_ = started_ + options_.start_patience;
    status = WriteProcessRecord(options_.record_path, process_);
    if (status.ok()) return;
    spdlog::error("the next torpord will not know of its router: {}", status.ToString());
    return;
  }
  spdlog::error("no router: {}", status.ToString());
  next_start_ = started_ + pauses_.Next({});
  changed_.SignalAll();
}

void RouterKeeper::NoteEnd() {
  std::string why = "it was not a child of this torpord";
  if (child_ != nullptr) child_->HasEnded(why);
  const TimePoint now = clock_.Now();
  next_start_ = now + pauses_.Next(now - started_);
  if (phase_ == Phase::kKeeping) spdlog::warn("router {} has ended: {}", process_.pid, why);
  child_.reset();
  descriptor_.Reset();
  process_ = {};
  is_attached_ = false;
  unlink(options_.record_path.c_str());
  changed_.SignalAll();
}

void RouterKeeper::Signal(int number) {
  if (descriptor_) pidfd_send_signal(descriptor_.get(), number, nullptr, 0);
}

}  // namespace torpor::server
