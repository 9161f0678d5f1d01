// A program for torpor-init that does what lines on standard input say, and answers each with a
// line.
//
//   usage: driven_program [STATUS]     STATUS: its exit status after SIGTERM, 0 by default

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "server/daemon/descriptor_store.h"
#include "server/daemon/service_manager.h"

namespace torpor::init {
namespace {

using server::DescriptorStore;
using server::NotifyServiceManager;

void Answer(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

int CountOpen() {
  constexpr int kBeyondAll = 256;
  int count = 0;
  for (int descriptor = 0; descriptor < kBeyondAll; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) >= 0) ++count;
  }
  return count;
}

std::string TextOf(const UniqueFd& file) {
  std::array<char, 64> text{};
  const ssize_t bytes = pread(file.get(), text.data(), text.size(), 0);
  return bytes < 0 ? "unreadable" : std::string(text.data(), static_cast<std::size_t>(bytes));
}

UniqueFd FileWith(const std::string& text) {
  UniqueFd file(memfd_create("kept", MFD_CLOEXEC));
  if (write(file.get(), text.data(), text.size()) < 0) std::abort();
  return file;
}

// A line of standard input. Byte by byte: what follows may be for the next program.
std::string ReadLine() {
  std::string line;
  char c = 0;
  while (read(STDIN_FILENO, &c, 1) == 1) {
    if (c == '\n') return line;
    line += c;
  }
  std::exit(0);  // the test has ended
}

// A process whose parent ends, and which lives until SIGKILL.
void MakeOrphan() {
  if (const pid_t between = fork(); between > 0) {
    waitpid(between, nullptr, 0);
    return;
  }
  const pid_t between = getpid();
  if (fork() > 0) _exit(0);
  while (getppid() == between) usleep(100);  // the adoption has no event
  Answer("orphan " + std::to_string(getpid()) + " of " + std::to_string(getppid()));
  pause();
  _exit(0);
}

void SayByAnother(const std::string& message) {
  const pid_t other = fork();
  if (other == 0) {
    NotifyServiceManager(message);
    _exit(0);
  }
  waitpid(other, nullptr, 0);
}

class DrivenProgram {
 public:
  explicit DrivenProgram(int status_after_term) : status_after_term_(status_after_term) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&signals, number);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    const int open = CountOpen();
    kept_ = DescriptorStore::TakeKept();
    store_ = DescriptorStore(kept_);
    signals_.Reset(signalfd(-1, &signals, SFD_CLOEXEC));
    std::string line = "started with " + std::to_string(open) + ":";
    for (const auto& [name, file] : kept_) line += " " + name + "=" + TextOf(file);
    Answer(line);
  }

  [[noreturn]] void Run() {
    while (true) {
      std::array<pollfd, 2> polled = {pollfd{signals_.get(), POLLIN, 0},
                                      pollfd{STDIN_FILENO, POLLIN, 0}};
      poll(polled.data(), polled.size(), -1);
      if (polled[0].revents != 0) OnSignal();
      if (polled[1].revents != 0) Do(ReadLine());
    }
  }

 private:
  void OnSignal() {
    signalfd_siginfo signal{};
    if (read(signals_.get(), &signal, sizeof signal) != sizeof signal) std::abort();
    Answer("signal " + std::to_string(signal.ssi_signo));
    if (signal.ssi_signo == SIGHUP) return;
    NotifyServiceManager("STOPPING=1");
    std::exit(signal.ssi_signo == SIGTERM ? status_after_term_ : 0);
  }

  void Do(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    std::string first;
    std::string second;
    words >> what >> first >> second;
    if (what == "keep") Answer(Keep(first, second));
    if (what == "keep_and_die") {
      Keep(first, second);
      raise(SIGKILL);
    }
    if (what == "remove") {
      store_.Remove(first);
      Answer("removed");
    }
    if (what == "say") NotifyServiceManager(first);
    if (what == "say_by_another") SayByAnother(first + "\n" + second);
    if (what == "variable")
      Answer(std::getenv(first.c_str()) ? std::getenv(first.c_str()) : "none");
    if (what == "orphan") MakeOrphan();
    if (what == "exit") std::exit(std::stoi(first));
    if (what == "die") raise(SIGKILL);
  }

  std::string Keep(const std::string& name, const std::string& text) {
    const absl::Status status = store_.Keep(name, FileWith(text).get());
    return status.ok() ? "kept" : "not kept: " + std::string(status.message());
  }

  const int status_after_term_;
  std::map<std::string, UniqueFd> kept_;
  DescriptorStore store_;
  UniqueFd signals_;
};

}  // namespace
}  // namespace torpor::init

int main(int argc, char** argv) {
  torpor::init::DrivenProgram(argc > 1 ? std::stoi(argv[1]) : 0).Run();
}
