#include "server/init/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace torpor::init {
namespace {

using Descriptors = std::map<std::string, UniqueFd>;

constexpr int kFirstKept = STDERR_FILENO + 1;

// Ours, if there are any, are of our own manager.
constexpr std::array kManagersVariables = {"LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID",
                                           "WATCHDOG_USEC", "WATCHDOG_PID"};

// All in the new process, whose parent had one thread: nothing is locked.
class NewProcess {
 public:
  // `failure`: where the reason goes if the program does not run.
  NewProcess(pid_t parent, int failure) : parent_(parent), failure_(failure) {}

  [[noreturn]] void Become(const Program& program, const Descriptors& kept) {
    DieWithParent();
    for (const char* const name : kManagersVariables) unsetenv(name);
    for (const auto& [name, value] : program.environment) setenv(name.c_str(), value.c_str(), 1);
    if (program.environment.contains("WATCHDOG_USEC")) SetToOwnId("WATCHDOG_PID");
    if (!PlaceDescriptors(kept)) Fail();
    program.prepare();
    Execute(program.words);
    Fail();
  }

 private:
  void DieWithParent() const {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent_) _exit(128 + SIGTERM);  // the parent died before
  }

  static void SetToOwnId(const char* variable) {
    setenv(variable, fmt::format("{}", getpid()).c_str(), 1);
  }

  // Makes those kept the descriptors from kFirstKept on, and all others close-on-exec.
  bool PlaceDescriptors(const Descriptors& kept) {
    const int end = kFirstKept + static_cast<int>(kept.size());
    // Out of the way first, since any descriptor may lie where another belongs.
    std::vector<int> moved;
    std::string names;
    failure_ = fcntl(failure_, F_DUPFD_CLOEXEC, end);
    for (const auto& [name, descriptor] : kept) {
      moved.push_back(fcntl(descriptor.get(), F_DUPFD_CLOEXEC, end));
      names += names.empty() ? name : ":" + name;
    }
    int place = kFirstKept;
    for (const int descriptor : moved) {
      if (dup2(descriptor, place++) < 0) return false;
    }
    if (close_range(static_cast<unsigned>(end), ~0U, CLOSE_RANGE_CLOEXEC) != 0) return false;
    if (kept.empty()) return true;
    setenv("LISTEN_FDS", fmt::format("{}", kept.size()).c_str(), 1);
    setenv("LISTEN_FDNAMES", names.c_str(), 1);
    SetToOwnId("LISTEN_PID");
    return true;
  }

  static void Execute(std::vector<std::string> words) {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
  }

  [[noreturn]] void Fail() const {
    const int error = errno;
    const ssize_t written = write(failure_, &error, sizeof error);
    _exit(written == sizeof error ? 127 : 126);
  }

  const pid_t parent_;
  int failure_;
};

}  // namespace

absl::StatusOr<pid_t> StartProgram(const Program& program, const Descriptors& kept) {
  std::array<int, 2> failure{};
  if (pipe2(failure.data(), O_CLOEXEC) != 0)
    return absl::ErrnoToStatus(errno, "cannot open a pipe");
  const UniqueFd failure_read(failure[0]);
  UniqueFd failure_write(failure[1]);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
  if (pid == 0) NewProcess(parent, failure_write.get()).Become(program, kept);
  failure_write.Reset();
  int error = 0;
  // End of file: exec closed the pipe, so the program runs.
  if (read(failure_read.get(), &error, sizeof error) != sizeof error) return pid;
  waitpid(pid, nullptr, 0);
  return absl::ErrnoToStatus(error, fmt::format("cannot start {}", program.words.front()));
}

}  // namespace torpor::init
