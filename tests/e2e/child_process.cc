#include "tests/e2e/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/unique_fd.h"

namespace torpor::e2e {
namespace {

// How often a file is looked at for a line that is awaited.
constexpr auto kLook = std::chrono::milliseconds(5);

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::abort();
}

void Redirect(const std::string& path, int descriptor) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(125);
}

int ToMilliseconds(Duration duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& command, const Options& options) {
  static std::atomic<int> number{0};
  const std::string prefix = options.folder + "/process" + std::to_string(number++);
  stdout_path_ = prefix + ".out";
  stderr_path_ = prefix + ".err";
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) Fail("fork");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);
  setpgid(0, 0);
  Redirect("/dev/null", STDIN_FILENO);
  Redirect(stdout_path_, STDOUT_FILENO);
  Redirect(stderr_path_, STDERR_FILENO);
  // Asio's sockets are not close-on-exec, and a connection that a child holds, too, never ends.
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

ChildProcess::~ChildProcess() {
  if (!status_) {
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    Wait(std::chrono::seconds(10));
  }
}

void ChildProcess::Signal(int number) const {
  if (!status_) kill(pid_, number);
}

std::optional<int> ChildProcess::Wait(Duration patience) {
  if (status_) return status_;
  if (!WaitUntilGone(pid_, patience)) return std::nullopt;
  int raw = 0;
  if (waitpid(pid_, &raw, 0) != pid_) Fail("waitpid");
  status_ = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
  return status_;
}

std::string ChildProcess::WaitForLine(const std::string& text, Duration patience) {
  const TimePoint give_up = SteadyClock().Now() + patience;
  bool ended = false;
  while (true) {
    std::istringstream lines(Stdout());
    for (std::string line; std::getline(lines, line) && !lines.eof();) {
      if (line.find(text) != std::string::npos) return line;
    }
    if (ended || SteadyClock().Now() >= give_up) return "";
    ended = Wait(kLook).has_value();
  }
}

std::string ChildProcess::Stdout() const { return ReadFile(stdout_path_); }
std::string ChildProcess::Stderr() const { return ReadFile(stderr_path_); }

std::unique_ptr<ChildProcess> RunToItsEnd(const std::string& program,
                                          const std::vector<std::string>& arguments,
                                          const std::string& folder) {
  std::vector<std::string> command = {std::string(TORPOR_BIN_DIR) + "/" + program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto process = std::make_unique<ChildProcess>(command, ChildProcess::Options{folder, {}});
  process->Wait(std::chrono::seconds(60));
  return process;
}

std::vector<pid_t> DescendantsOf(pid_t pid) {
  std::vector<pid_t> descendants;
  std::error_code ignored;
  // Each thread has a list of the children that it has started.
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", ignored)) {
    std::istringstream children(ReadFile(thread.path().string() + "/children"));
    for (pid_t child = 0; children >> child;) {
      descendants.push_back(child);
      for (const pid_t descendant : DescendantsOf(child)) descendants.push_back(descendant);
    }
  }
  return descendants;
}

std::string ProgramNameOf(pid_t pid) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", ignored)
      .filename()
      .string();
}

bool WaitUntilGone(pid_t pid, Duration patience) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0 && errno == ESRCH) return true;
  if (process.get() < 0) Fail("pidfd_open");
  pollfd end{process.get(), POLLIN, 0};
  return poll(&end, 1, ToMilliseconds(patience)) > 0;
}

}  // namespace torpor::e2e
