#include "tools/torporctl/standalone_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/clock.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "server/config/config_loader.h"
#include "server/daemon/client_libraries.h"
#include "server/daemon/cuda_libraries.h"
#include "tools/torporctl/private_folder.h"

namespace torpor::torporctl {
namespace {

constexpr int kExitDaemonFailed = 125;
constexpr const char* kFunction = "standalone";

// Converts a status of waitpid to a shell's exit status: 128 + signal for a killed process.
int ExitStatusOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// A descriptor for signals: signals to forward, and the ends of child processes.
class SignalSource {
 public:
  SignalSource() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) {
      sigaddset(&signals, number);
    }
    sigprocmask(SIG_BLOCK, &signals, &inherited_mask_);
    descriptor_.Reset(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~SignalSource() { RestoreInChild(); }
  SignalSource(const SignalSource&) = delete;
  SignalSource& operator=(const SignalSource&) = delete;

  int descriptor() const { return descriptor_.get(); }

  // Returns a pending signal without blocking; nullopt if no signal is pending.
  std::optional<signalfd_siginfo> Next() {
    signalfd_siginfo info{};
    if (read(descriptor_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    return info;
  }

  // Restores the signal mask from before the construction, for programs to be executed.
  void RestoreInChild() const { sigprocmask(SIG_SETMASK, &inherited_mask_, nullptr); }

 private:
  sigset_t inherited_mask_{};
  UniqueFd descriptor_;
};

// Ends this process, a child just forked, when its parent ends for whatever reason.
void DieWithParent(pid_t parent, int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) _exit(128 + signal);
}

// The socket for the daemon's READY=1, the protocol of systemd.
absl::StatusOr<UniqueFd> OpenReadySocket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  UniqueFd ready(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (bind(ready.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return absl::UnavailableError(fmt::format("cannot bind {}: {}", path, std::strerror(errno)));
  }
  return ready;
}

// A run of a program with a private daemon: starts both, forwards signals, and stops the daemon
// after the program. Uses fork and waits for all children of the process, so at most one run may
// exist at a time. Single-threaded.
class StandaloneRun {
 public:
  StandaloneRun(const UserProgram& program, const StandaloneOptions& options, PrivateFolder folder)
      : program_(program), options_(options), folder_(std::move(folder)) {}

  // Returns the program's exit status, kExitDaemonFailed if no daemon became ready, or 128 + signal
  // if a signal came before the program's start. Call once.
  int Run() {
    if (const absl::Status status = StartDaemon(); !status.ok()) {
      Say(std::string(status.message()));
      return kExitDaemonFailed;
    }
    if (!WaitUntilReady()) {
      StopDaemon();
      if (!options_.verbose) ShowLog();
      return interrupted_by_ != 0 ? 128 + interrupted_by_ : kExitDaemonFailed;
    }
    StartProgram();
    WaitForProgram();
    const bool daemon_died = daemon_ == 0;
    StopDaemon();
    if (daemon_died && !options_.verbose) ShowLog();
    return ExitStatusOf(program_status_);
  }

 private:
  std::string PathOf(const char* name) const { return folder_.path() + "/" + name; }

  // Writes the configuration and forks torpord, in a process group of its own, without waiting
  // until the daemon is ready.
  absl::Status StartDaemon() {
    TORPOR_ASSIGN_OR_RETURN(ready_, OpenReadySocket(PathOf("notify")));
    std::ofstream(PathOf("config.yaml")) << Configuration();
    const std::string torpord = server::ProgramDirectory() + "/torpord";
    if (access(torpord.c_str(), X_OK) != 0) {
      return absl::NotFoundError(
          fmt::format("{} is missing; it belongs beside torporctl", torpord));
    }
    // Flags override TORPOR_ variables set by the user.
    std::vector<std::string> arguments = {
        torpord, "--config-file=" + PathOf("config.yaml"), "--run-dir=" + folder_.path(),
        "--client-socket=" + PathOf("torpor.sock"), "--admin-socket=" + PathOf("admin.sock"),
        "--state-dir=" + PathOf("state"),
        // An empty value is an argument of its own: CLI11 takes "--flag=" for a flag without a
        // value.
        "--http-address", "", "--metrics-address", "",
        fmt::format("--anonymous-function={}", kFunction)};
    if (!options_.topology.empty()) {
      arguments.push_back("--emulator-topology=" + options_.topology);
    }
    const pid_t parent = getpid();
    daemon_ = fork();
    if (daemon_ < 0) {
      daemon_ = 0;
      return absl::ResourceExhaustedError(fmt::format("cannot fork: {}", std::strerror(errno)));
    }
    if (daemon_ == 0) BecomeDaemon({arguments, torpord}, parent);
    return absl::OkStatus();
  }

  // Returns the daemon's configuration file, with a single function.
  std::string Configuration() const {
    // A single function is never swapped, so measuring links is not worth the time; nor is a spare
    // executor for a single run.
    std::string text = "version: v1\nswap_group_bytes: 2MiB\nspare_executor: false\n";
    // An emulated driver needs little memory, but CUDA arrays lie in the driver's part.
    if (IsEmulated()) text += "driver_reserve: 512MiB\n";
    return text + fmt::format("functions:\n  - name: {}\n    memory_limit: 0\n    gpus: {}\n",
                              kFunction, options_.gpus);
  }

  // Repeats the daemon's own search. After a failed search the daemon reports the error.
  bool IsEmulated() const {
    server::Config config;
    config.emulator_topology = options_.topology;
    config.cuda_library_dir =
        server::ProcessEnvironment("TORPOR_CUDA_LIBRARY_DIR").value_or(std::string());
    const auto libraries = server::FindCudaLibraries(config, server::ProgramDirectory());
    return libraries.ok() && libraries->is_emulated;
  }

  // Runs in the forked child: redirects output to the log, or to stderr if verbose, and executes
  // torpord.
  [[noreturn]] void BecomeDaemon(const UserProgram& torpord, pid_t parent) {
    DieWithParent(parent, SIGTERM);
    // Out of the terminal's foreground group: Ctrl-C is for the program.
    setpgid(0, 0);
    signals_.RestoreInChild();
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    if (options_.verbose) {
      dup2(STDERR_FILENO, STDOUT_FILENO);
    } else {
      const int log =
          open(PathOf("torpord.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      dup2(log, STDOUT_FILENO);
      dup2(log, STDERR_FILENO);
    }
    // An emulated node without a description has the requested number of GPUs, of a capability for
    // common programs: nvcc's default target, and PyTorch's wheels, which hold no PTX.
    constexpr int kKeep = 0;
    setenv("TORPOR_EMULATOR_GPUS", fmt::format("{}", options_.gpus).c_str(), kKeep);
    setenv("TORPOR_EMULATOR_COMPUTE_CAPABILITY", "7.5", kKeep);
    setenv("NOTIFY_SOCKET", PathOf("notify").c_str(), 1);
    unsetenv("WATCHDOG_USEC");
    _exit(Execute(torpord));
  }

  // Waits for the daemon's READY=1 for up to a minute. Returns false, after a message, if the
  // daemon ends or is late, or silently after an interrupting signal.
  bool WaitUntilReady() {
    constexpr std::chrono::seconds kPatience(60);
    const TimePoint give_up = clock_.Now() + kPatience;
    while (clock_.Now() < give_up) {
      if (IsReady()) return true;
      WaitForEvent(give_up, ready_.get());
      HandleSignals();
      if (interrupted_by_ != 0) return false;
      if (daemon_ == 0) {
        Say("the private torpord did not start");
        return false;
      }
    }
    Say(fmt::format("the private torpord was not ready after {} s", kPatience.count()));
    return false;
  }

  // Returns whether READY=1 has come since the last call. Does not block.
  bool IsReady() {
    char state[256];
    const ssize_t bytes = recv(ready_.get(), state, sizeof state, 0);
    return bytes > 0 && std::string_view(state, static_cast<std::size_t>(bytes)).find("READY=1") !=
                            std::string_view::npos;
  }

  // Blocks until a signal comes, `other` (if not -1) is readable, or `give_up`.
  void WaitForEvent(std::optional<TimePoint> give_up, int other = -1) {
    pollfd descriptors[] = {{signals_.descriptor(), POLLIN, 0}, {other, POLLIN, 0}};
    int timeout_ms = -1;
    if (give_up) {
      timeout_ms = static_cast<int>(std::max<std::int64_t>(
          0, std::chrono::ceil<std::chrono::milliseconds>(*give_up - clock_.Now()).count()));
    }
    poll(descriptors, std::size(descriptors), timeout_ms);
  }

  // Handles pending signals: reaps children, and forwards the rest to the program. Before the
  // program's start a signal interrupts the run.
  void HandleSignals() {
    while (const auto info = signals_.Next()) {
      const auto number = static_cast<int>(info->ssi_signo);
      if (number == SIGCHLD) {
        ReapChildren();
      } else if (program_pid_ == 0) {
        interrupted_by_ = number;
      } else if (info->ssi_code != SI_KERNEL) {
        // The terminal's own signals reach the program directly, as a process of the same group.
        kill(program_pid_, number);
      }
    }
  }

  // Notes the ends of the daemon and of the program; does not block.
  void ReapChildren() {
    int status = 0;
    for (pid_t child = 0; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (child == daemon_) daemon_ = 0;
      if (child == program_pid_) {
        program_pid_ = 0;
        program_status_ = status;
      }
    }
  }

  // Forks the program with the environment of a client. A failed fork becomes the program's exit
  // status.
  void StartProgram() {
    auto environment =
        ClientEnvironment(server::ClientLibraryDirectory(), PathOf("torpor.sock"), "");
    // The variable chose the private daemon's GPUs; the program sees all of the daemon's.
    environment["CUDA_VISIBLE_DEVICES"] = "";
    // A private daemon has no successor.
    environment["TORPOR_RECONNECT_TIMEOUT"] = "0";
    const pid_t parent = getpid();
    program_pid_ = fork();
    if (program_pid_ < 0) {
      Say(fmt::format("cannot fork: {}", std::strerror(errno)));
      program_pid_ = 0;
      program_status_ = W_EXITCODE(kExitDaemonFailed, 0);
      return;
    }
    if (program_pid_ > 0) return;
    // A SIGKILL of this process is meant for the program.
    DieWithParent(parent, SIGKILL);
    signals_.RestoreInChild();
    SetEnvironment(environment);
    _exit(Execute(program_));
  }

  // Waits until the program ends. The death of the daemon is reported, but does not end the
  // program.
  void WaitForProgram() {
    bool reported = false;
    while (program_pid_ != 0) {
      WaitForEvent(std::nullopt);
      HandleSignals();
      if (daemon_ == 0 && program_pid_ != 0 && !reported) {
        reported = true;
        Say("the private torpord died; the program's CUDA calls fail from now on");
      }
    }
  }

  // Sends SIGTERM, waits until the daemon ends, but at most two seconds or until another signal,
  // then kills the rest of the daemon's process group.
  void StopDaemon() {
    if (daemon_ == 0) return;
    // No process is left to use the results of running kernels.
    constexpr std::chrono::seconds kPatience(2);
    const pid_t group = daemon_;
    kill(daemon_, SIGTERM);
    interrupted_by_ = 0;
    const TimePoint give_up = clock_.Now() + kPatience;
    while (daemon_ != 0 && interrupted_by_ == 0 && clock_.Now() < give_up) {
      WaitForEvent(give_up);
      HandleSignals();
    }
    // Kill the rest of the daemon's process group, executors included.
    kill(-group, SIGKILL);
    if (daemon_ != 0) waitpid(daemon_, nullptr, 0);
    daemon_ = 0;
  }

  // Copies the daemon's log to stderr.
  void ShowLog() const {
    std::ifstream log(PathOf("torpord.log"));
    for (std::string line; std::getline(log, line);) Say("torpord: " + line);
  }

  const UserProgram& program_;
  const StandaloneOptions& options_;
  PrivateFolder folder_;
  SteadyClock clock_;
  SignalSource signals_;
  UniqueFd ready_;
  pid_t daemon_ = 0;  // 0 while no daemon runs
  pid_t program_pid_ = 0;
  int program_status_ = 0;
  int interrupted_by_ = 0;  // a signal from before the program's start; 0 for none
};

}  // namespace

int RunStandalone(const UserProgram& program, const StandaloneOptions& options) {
  absl::StatusOr<PrivateFolder> folder = PrivateFolder::Create();
  if (!folder.ok()) {
    Say(std::string(folder.status().message()));
    return kExitDaemonFailed;
  }
  return StandaloneRun(program, options, *std::move(folder)).Run();
}

}  // namespace torpor::torporctl
