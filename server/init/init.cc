#include "server/init/init.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/common.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "base/descriptor_limit.h"
#include "base/poll_timeout.h"
#include "base/status_macros.h"
#include "server/daemon/service_manager.h"
#include "server/init/notify_message.h"
#include "server/init/orphans.h"
#include "server/log/structured_log.h"

namespace torpor::init {
namespace {

using server::LogEvent;
using server::NotifyServiceManager;
using spdlog::level::err;
using spdlog::level::info;
using spdlog::level::warn;

constexpr int kExitNotExecutable = 126;
constexpr int kExitNotFound = 127;

// Of this process and of the program's before it runs, beside those kept: a generous count.
constexpr rlim_t kOtherDescriptors = 64;

// A new process holds every descriptor twice for a moment (program.cc).
std::size_t CapacityWithin(const rlimit& limit, std::size_t wanted) {
  const rlim_t free = limit.rlim_cur - std::min(limit.rlim_cur, kOtherDescriptors);
  const auto capacity = static_cast<std::size_t>(std::min<rlim_t>(wanted, free / 2));
  if (capacity < wanted) {
    LogEvent(warn, "torpor-init keeps fewer descriptors than wanted; raise the limit of open files",
             {{"kept_at_most", capacity}, {"wanted", wanted}, {"open_files", limit.rlim_cur}});
  }
  return capacity;
}

int ExitStatusOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::optional<Duration> ManagersInterval() {
  const auto interval = server::WatchdogInterval();
  return interval ? std::optional<Duration>(*interval) : std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Init>> Init::Create(Options options) {
  rlimit program_limit{};
  getrlimit(RLIMIT_NOFILE, &program_limit);
  RaiseDescriptorLimit();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  TORPOR_ASSIGN_OR_RETURN(NotifySocket socket, NotifySocket::Open());
  const std::size_t capacity = CapacityWithin(limit, options.store_max);
  AdoptOrphans();
  return std::unique_ptr<Init>(
      new Init(std::move(options), program_limit, capacity, std::move(socket)));
}

Init::Init(Options options, const rlimit& program_limit, std::size_t capacity, NotifySocket socket)
    : options_(std::move(options)),
      program_limit_(program_limit),
      feed_interval_(ManagersInterval()),
      socket_(std::move(socket)),
      kept_(capacity),
      policy_(options_.pauses),
      next_start_(clock_.Now()) {
  if (feed_interval_) feed_at_ = clock_.Now() + *feed_interval_;
}

int Init::Run() {
  while (!exit_status_) {
    StartDue();
    Wait(NextDue());
    ReceiveMessages();
    HandleSignals();
    CheckWatchdog();
    FeedManager();
  }
  EndOrphans();
  return *exit_status_;
}

void Init::StartDue() {
  if (!is_running() && clock_.Now() >= next_start_) Start();
}

void Init::Start() {
  Program program{.words = options_.program,
                  .environment = {{"NOTIFY_SOCKET", socket_.name()},
                                  {"FDSTORE", fmt::format("{}", kept_.capacity())}},
                  .prepare = [this] {
                    setrlimit(RLIMIT_NOFILE, &program_limit_);
                    signals_.RestoreInChild();
                  }};
  if (options_.watchdog > Duration::zero()) {
    const auto interval = std::chrono::duration_cast<std::chrono::microseconds>(options_.watchdog);
    program.environment["WATCHDOG_USEC"] = fmt::format("{}", interval.count());
  }
  started_ = clock_.Now();
  const absl::StatusOr<pid_t> pid = StartProgram(program, kept_.by_name());
  if (!pid.ok()) {
    LogEvent(err, "torpor-init cannot start its program",
             {{"error", std::string(pid.status().message())}});
    return OnEnd(absl::IsNotFound(pid.status()) ? kExitNotFound : kExitNotExecutable);
  }
  program_pid_ = *pid;
  LogEvent(info, "torpor-init has started its program",
           {{"program", options_.program.front()},
            {"pid", program_pid_},
            {"descriptors", kept_.by_name().size()}});
}

void Init::OnEnd(int exit_status) {
  program_pid_ = 0;
  watchdog_at_ = TimePoint::max();
  last_status_ = exit_status;
  const TimePoint now = clock_.Now();
  const std::optional<Duration> pause = policy_.OnEnd(exit_status, now - started_);
  if (!pause) {
    exit_status_ = exit_status;
    return;
  }
  next_start_ = now + *pause;
  LogEvent(warn, "torpor-init starts its program again",
           {{"status", exit_status}, {"after_ms", ToMilliseconds(*pause)}});
}

TimePoint Init::NextDue() const {
  return std::min({is_running() ? watchdog_at_ : next_start_, feed_at_});
}

void Init::Wait(TimePoint until) {
  std::array<pollfd, 2> polled = {pollfd{signals_.descriptor(), POLLIN, 0},
                                  pollfd{socket_.descriptor(), POLLIN, 0}};
  poll(polled.data(), polled.size(), PollTimeout(until, clock_.Now()));
}

void Init::ReceiveMessages() {
  while (auto datagram = socket_.Receive()) OnMessage(*std::move(datagram));
}

void Init::OnMessage(NotifySocket::Datagram datagram) {
  // Only the program itself is heard, not its children.
  if (!is_running() || datagram.sender != program_pid_) return;
  const NotifyMessage message = ParseNotifyMessage(datagram.text);
  if (message.drops_descriptors) kept_.Remove(message.name);
  if (message.has_descriptors) KeepDescriptors(message.name, std::move(datagram));
  if (message.is_ready) {
    policy_.OnReady();
    NotifyServiceManager("READY=1");
  }
  if (message.is_stopping && policy_.is_stopping()) NotifyServiceManager("STOPPING=1");
  if ((message.is_ready || message.feeds_watchdog) && options_.watchdog > Duration::zero()) {
    watchdog_at_ = clock_.Now() + options_.watchdog;
  }
}

void Init::KeepDescriptors(const std::string& name, NotifySocket::Datagram datagram) {
  if (datagram.is_cut || datagram.descriptors.size() != 1) {
    LogEvent(err, "torpor-init keeps one descriptor a message, and got none or several",
             {{"name", name}, {"descriptors", datagram.descriptors.size()}});
    return;
  }
  const absl::Status kept = kept_.Keep(name, std::move(datagram.descriptors.front()));
  if (!kept.ok()) {
    LogEvent(err, "torpor-init does not keep a descriptor",
             {{"error", std::string(kept.message())}});
  }
}

void Init::HandleSignals() {
  while (const auto signal = signals_.Next()) {
    const auto number = static_cast<int>(signal->ssi_signo);
    if (number == SIGCHLD) {
      Reap();
    } else {
      PassOn(number, signal->ssi_code == SI_KERNEL);
    }
  }
}

void Init::PassOn(int number, bool is_of_terminal) {
  policy_.OnSignal(number);
  // The terminal has sent its own signals to the program, too, as a process of the same group.
  if (is_running() && !is_of_terminal) kill(program_pid_, number);
  // The last that ran is then the last of all.
  if (!is_running() && policy_.is_stopping()) exit_status_ = last_status_;
}

void Init::Reap() {
  int status = 0;
  while (true) {
    siginfo_t ended{};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    // What the program has said before its end, while its process id is nobody else's.
    if (ended.si_pid == program_pid_) ReceiveMessages();
    waitpid(ended.si_pid, &status, 0);
    if (ended.si_pid == program_pid_) OnEnd(ExitStatusOf(status));
  }
}

void Init::CheckWatchdog() {
  if (!is_running() || clock_.Now() < watchdog_at_) return;
  LogEvent(err, "the program is silent; torpor-init kills it",
           {{"watchdog_s", ToSeconds(options_.watchdog)}});
  kill(program_pid_, SIGKILL);
  watchdog_at_ = TimePoint::max();
}

void Init::FeedManager() {
  if (clock_.Now() < feed_at_) return;
  NotifyServiceManager("WATCHDOG=1");
  feed_at_ = clock_.Now() + *feed_interval_;
}

bool Init::HasChildren() {
  siginfo_t ended{};
  return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void Init::EndOrphans() {
  const TimePoint kill_at = clock_.Now() + options_.grace;
  std::set<pid_t> told;
  while (HasChildren()) {
    const bool is_late = clock_.Now() >= kill_at;
    for (const pid_t child : Children()) {
      if (told.insert(child).second) kill(child, SIGTERM);
      if (is_late) kill(child, SIGKILL);
    }
    // A killed process's children come to this process a moment later.
    Wait(is_late ? clock_.Now() + std::chrono::milliseconds(10) : kill_at);
    ReceiveMessages();
    HandleSignals();
  }
}

}  // namespace torpor::init
