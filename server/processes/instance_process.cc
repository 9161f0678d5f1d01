#include "server/processes/instance_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "server/supervisor/pipe.h"
#include "server/supervisor/process_record.h"

namespace torpor::server {
namespace {

// The step at which a new process failed, before its program ran.
struct Failure {
  enum class Step { kUser, kToken, kProgram } step = Step::kProgram;
  int error = 0;
};

// All that the new process needs, made before the fork: after it only async-signal-safe calls are
// allowed, since another thread may have held any lock.
struct Launch {
  explicit Launch(const InstanceCommand& command)
      : user(command.user), token_file(command.token_file) {
    for (const std::string& word : command.words) words.push_back(word);
    for (const auto& [name, value] : command.environment) {
      variables.push_back(fmt::format("{}={}", name, value));
    }
    for (std::string& word : words) arguments.push_back(word.data());
    for (std::string& variable : variables) environment.push_back(variable.data());
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
  }

  std::vector<std::string> words;
  std::vector<std::string> variables;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  const std::optional<ProcessUser> user;
  const std::string token_file;
};

// The new process's part. By system calls: glibc's wrappers would tell threads that are not here.
class NewProcess {
 public:
  // `go`: becomes readable when the program may run. `failure`: where a Failure goes.
  NewProcess(int go, int failure) : go_(go), failure_(failure) {}

  [[noreturn]] void Become(const Launch& launch) const {
    setsid();
    char word = 0;
    // End of file: the daemon has died without writing the record.
    if (read(go_, &word, 1) != 1) _exit(1);
    ResetSignals();
    umask(022);
    if (!TakeUser(launch)) Fail(Failure::Step::kUser);
    const bool is_readable =
        launch.token_file.empty() || access(launch.token_file.c_str(), R_OK) == 0;
    if (!is_readable) Fail(Failure::Step::kToken);
    if (chdir("/") != 0) Fail(Failure::Step::kProgram);
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    execve(launch.arguments.front(), launch.arguments.data(), launch.environment.data());
    Fail(Failure::Step::kProgram);
  }

 private:
  static void ResetSignals() {
    // Ignored signals stay ignored over exec. glibc's signal() refuses its own two, which some
    // starters of programs leave ignored. All zero is SIG_DFL.
    struct {
      void* handler;
      unsigned long flags;
      void* restorer;
      unsigned long mask;
    } constexpr kDefault{};
    for (int number = 1; number < NSIG; ++number) {
      syscall(SYS_rt_sigaction, number, &kDefault, nullptr, sizeof kDefault.mask);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  static bool TakeUser(const Launch& launch) {
    if (!launch.user || launch.user->user == geteuid()) return true;
    const uid_t user = launch.user->user;
    const gid_t group = launch.user->group;
    return syscall(SYS_setgroups, 0, nullptr) == 0 &&
           syscall(SYS_setresgid, group, group, group) == 0 &&
           syscall(SYS_setresuid, user, user, user) == 0 &&
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  }

  [[noreturn]] void Fail(Failure::Step step) const {
    const Failure failure = {step, errno};
    const ssize_t written = write(failure_, &failure, sizeof failure);
    _exit(written == sizeof failure ? 127 : 126);
  }

  const int go_;
  const int failure_;
};

absl::Status StatusOf(const Failure& failure, const InstanceCommand& command) {
  const std::string as =
      command.user ? fmt::format(" as user {}", command.user->name) : std::string();
  switch (failure.step) {
    case Failure::Step::kUser:
      return absl::ErrnoToStatus(failure.error,
                                 fmt::format("cannot become user {}", command.user->name));
    case Failure::Step::kToken:
      return absl::ErrnoToStatus(
          failure.error, fmt::format("cannot read its token_file {}{}", command.token_file, as));
    case Failure::Step::kProgram:
      break;
  }
  return absl::ErrnoToStatus(failure.error,
                             fmt::format("cannot execute {}{}", command.words.front(), as));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> StartInstance(const InstanceCommand& command,
                                                            const std::string& record_path) {
  const Launch launch(command);
  TORPOR_ASSIGN_OR_RETURN(Pipe go, OpenPipe());
  TORPOR_ASSIGN_OR_RETURN(Pipe failing, OpenPipe());
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
  if (pid == 0) {
    close(go.writer.get());  // or its end would never be seen
    NewProcess(go.reader.get(), failing.writer.get()).Become(launch);
  }
  failing.writer.Reset();
  std::unique_ptr<ChildProcess> process = ChildProcess::Of(pid);
  const auto give_up = [&](absl::Status why) {
    process.reset();
    unlink(record_path.c_str());
    return why;
  };
  const ProcessIdentity identity = IdentityOf(pid).value_or(ProcessIdentity{.pid = pid});
  const absl::Status written = WriteProcessRecord(record_path, {identity, command.Fingerprint()});
  if (!written.ok()) return give_up(written);
  constexpr char kGo = 1;
  if (write(go.writer.get(), &kGo, 1) != 1) return give_up(absl::ErrnoToStatus(errno, "write"));
  Failure failure;
  // End of file: exec closed the pipe, so the program runs.
  if (read(failing.reader.get(), &failure, sizeof failure) == sizeof failure) {
    return give_up(StatusOf(failure, command));
  }
  process->Leave();
  return process;
}

}  // namespace torpor::server
