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

// Appends what comes from `fd` until it ends or the time is up; false in the latter case.
bool ReadUntilEnd(int fd, double patience_ms, std::string& text) {
  const Stopwatch watch;
  std::array<char, 4096> buffer;
  while (watch.ms() < patience_ms) {
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, static_cast<int>(patience_ms - watch.ms()) + 1) <= 0) continue;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) return true;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return false;
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
  const bool is_complete = ReadUntilEnd(reading.get(), item.patience_s * 1e3, end.lines);
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
