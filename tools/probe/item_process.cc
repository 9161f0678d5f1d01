#include "tools/probe/item_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/unique_fd.h"

namespace torpor::probe {
namespace {

constexpr int kTickMs = 20;

// Appends what there is within `wait_ms`; false if there is nothing.
bool ReadSome(int fd, int wait_ms, std::string& text) {
  std::array<char, 4096> buffer;
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, wait_ms) <= 0) return false;
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  if (got <= 0) return false;
  text.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

// Leaves the process to be waited for, so that no other gets its number.
bool HasEnded(pid_t child) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == child;
}

// Appends what the process writes until it ends or the time is up; false in the latter case. The
// pipe may stay open, if the item has left a process behind.
bool ReadUntilEnd(int fd, pid_t child, double patience_ms, std::string& text) {
  const Stopwatch watch;
  bool has_ended = false;
  while (!has_ended && watch.ms() < patience_ms) {
    has_ended = HasEnded(child);  // before the last look, so that nothing is missed
    while (ReadSome(fd, has_ended ? 0 : kTickMs, text)) {
    }
  }
  return has_ended;
}

std::string Describe(int status) {
  if (WIFSIGNALED(status)) {
    return "ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  }
  if (WEXITSTATUS(status) == 0) return "";
  return "ended with status " + std::to_string(WEXITSTATUS(status));
}

[[noreturn]] void RunItem(const Item& item, int fd) {
  setpgid(0, 0);  // its own children end with it
  // What kernels print is not part of the document that goes to standard output.
  dup2(STDERR_FILENO, STDOUT_FILENO);
  Report report(fd, item.name);
  item.run(report);
  // A driver with a lost context may hang in its destructors.
  _exit(EXIT_SUCCESS);
}

}  // namespace

ItemEnd RunInProcess(const Item& item) {
  ItemEnd end;
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {.lines = "", .error = "no pipe", .seconds = 0};
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const Stopwatch watch;
  const pid_t child = fork();
  if (child == 0) RunItem(item, writing.get());
  writing.Reset();
  const bool is_complete = ReadUntilEnd(reading.get(), child, item.patience_s * 1e3, end.lines);
  kill(-child, SIGKILL);
  if (!is_complete) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  end.error = is_complete ? Describe(status)
                          : "hung: ended by force after " + std::to_string(item.patience_s) + " s";
  end.seconds = watch.ms() / 1e3;
  return end;
}

}  // namespace torpor::probe
