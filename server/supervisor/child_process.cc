#include "server/supervisor/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <sys/pidfd.h>  // of glibc 2.36: has no linkage of its own
}

#include <array>
#include <cerrno>
#include <csignal>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/supervisor/pipe.h"

namespace torpor::server {
namespace {

std::string NameOf(const std::string& entry) { return entry.substr(0, entry.find('=')); }

std::vector<std::string> Environment(const std::vector<std::string>& added) {
  std::map<std::string, std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) merged[NameOf(*entry)] = *entry;
  for (const std::string& entry : added) merged[NameOf(entry)] = entry;
  std::vector<std::string> environment;
  environment.reserve(merged.size());
  for (const auto& [name, entry] : merged) environment.push_back(entry);
  return environment;
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec only async-signal-safe calls are allowed. `go` becomes readable when the
// program may run; -1: at once.
[[noreturn]] void BecomeChild(pid_t parent, bool outlives_parent, int go, int output, int failure,
                              const char* program, char* const* arguments,
                              char* const* environment) {
  if (outlives_parent) {
    setsid();
  } else {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);  // the parent died before PDEATHSIG was set
    setpgid(0, 0);
  }
  char word = 0;
  if (go >= 0 && read(go, &word, 1) != 1) _exit(127);  // end of file: the parent has died
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  // Asio's sockets are not close-on-exec, and a connection inherited by a child never ends.
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  execve(program, arguments, environment);
  const int error = errno;
  const ssize_t written = write(failure, &error, sizeof error);
  _exit(written == sizeof error ? 127 : 126);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ProcessCommand& command,
                                                                  int standard_output) {
  std::vector<std::string> words = {command.program};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  const std::vector<std::string> environment = Environment(command.added_environment);
  const std::vector<char*> argument_pointers = Pointers(words);
  const std::vector<char*> environment_pointers = Pointers(environment);
  TORPOR_ASSIGN_OR_RETURN(Pipe failure, OpenPipe());
  Pipe go;
  if (command.before_run) {
    TORPOR_ASSIGN_OR_RETURN(go, OpenPipe());
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
  if (pid == 0) {
    const int output = standard_output >= 0 ? standard_output : STDERR_FILENO;
    if (go.writer) close(go.writer.get());  // or its end would never be seen
    BecomeChild(parent, command.outlives_parent, go.reader.get(), output, failure.writer.get(),
                command.program.c_str(), argument_pointers.data(), environment_pointers.data());
  }
  failure.writer.Reset();
  std::unique_ptr<ChildProcess> child = Of(pid);
  if (command.before_run) {
    command.before_run(pid);
    constexpr char kGo = 1;
    if (write(go.writer.get(), &kGo, 1) != 1) return absl::ErrnoToStatus(errno, "write");
  }
  int error = 0;
  // End of file: exec closed the pipe, so the program runs.
  if (read(failure.reader.get(), &error, sizeof error) == sizeof error) {
    return absl::ErrnoToStatus(error, absl::StrCat("cannot execute ", command.program));
  }
  return child;
}

std::unique_ptr<ChildProcess> ChildProcess::Of(pid_t forked) {
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(forked, UniqueFd(pidfd_open(forked, 0)), /*is_adopted=*/false));
}

std::unique_ptr<ChildProcess> ChildProcess::Adopt(const ProcessIdentity& process) {
  UniqueFd descriptor = OpenProcess(process);
  if (!descriptor) return nullptr;
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(process.pid, std::move(descriptor), /*is_adopted=*/true));
}

ChildProcess::~ChildProcess() {
  if (has_ended_ || is_left_) return;
  Kill();
  Await(-1);
}

bool ChildProcess::Await(int timeout_ms) {
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&ended, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return false;
  has_ended_ = true;
  // While a child's number is kept. The kernel gives numbers out in turn, so that an adopted
  // process's is not in use again so soon.
  kill(-pid_, SIGKILL);
  if (!is_adopted_) waitpid(pid_, &status_, 0);
  return true;
}

void ChildProcess::Signal(int number) const {
  // Once the process has ended its number may be another's.
  if (pidfd_send_signal(pidfd_.get(), number, nullptr, 0) == 0) kill(-pid_, number);
}

bool ChildProcess::HasEnded(std::string& why) {
  if (!has_ended_ && !Await(0)) return false;
  if (is_adopted_) {
    why = "of unknown status, as an earlier torpord had started it";
  } else if (WIFEXITED(status_)) {
    why = absl::StrCat("exit status ", WEXITSTATUS(status_));
  } else {
    why = absl::StrCat("signal ", WTERMSIG(status_));
  }
  return true;
}

absl::StatusOr<std::string> RunForOutput(const ProcessCommand& command, Duration timeout) {
  TORPOR_ASSIGN_OR_RETURN(Pipe pipe, OpenPipe());
  TORPOR_ASSIGN_OR_RETURN(const auto child, ChildProcess::Start(command, pipe.writer.get()));
  pipe.writer.Reset();
  const SteadyClock clock;
  const TimePoint deadline = clock.Now() + timeout;
  std::string output;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.Now());
    pollfd ready = {pipe.reader.get(), POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) == 0) {
      return absl::DeadlineExceededError(absl::StrCat(command.program, " does not end"));
    }
    std::array<char, 4096> buffer;
    const ssize_t got = read(pipe.reader.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    output.append(buffer.data(), static_cast<std::size_t>(got));
  }
  pollfd ended = {child->descriptor(), POLLIN, 0};
  poll(&ended, 1, static_cast<int>(std::chrono::milliseconds(std::chrono::seconds(5)).count()));
  std::string why;
  if (!child->HasEnded(why)) why = "no end";
  if (why == "exit status 0") return output;
  return absl::UnavailableError(absl::StrCat(command.program, " failed: ", why));
}

}  // namespace torpor::server
