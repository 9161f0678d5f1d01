// torpor-init itself, as a process, with programs of its own.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "tests/server/daemon/fake_service_manager.h"

namespace torpor::init {
namespace {

using server::FakeServiceManager;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kPatienceMs = 60'000;

std::vector<std::string> DrivenProgram() { return {DRIVEN_PROGRAM}; }

// torpor-init with a program, most often one that does what it is told (driven_program.cc).
class InitProcess {
 public:
  explicit InitProcess(const std::vector<std::string>& options = {},
                       const std::vector<std::string>& program = DrivenProgram()) {
    std::vector<std::string> words = {TORPOR_INIT};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), program.begin(), program.end());
    std::array<int, 2> input{};
    std::array<int, 2> output{};
    if (pipe2(input.data(), O_CLOEXEC) != 0 || pipe2(output.data(), O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) Become(words, input[0], output[1]);
    close(input[0]);
    close(output[1]);
    input_.Reset(input[1]);
    output_.Reset(output[0]);
  }
  InitProcess(const InitProcess&) = delete;
  InitProcess& operator=(const InitProcess&) = delete;
  // The program ends when its input does.
  ~InitProcess() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid() const { return pid_; }
  void Signal(int number) const { kill(pid_, number); }

  // Has the program do something.
  void Tell(const std::string& what) const {
    const std::string line = what + "\n";
    ASSERT_EQ(write(input_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  // The program's next line.
  std::string Answer() const {
    std::string line;
    pollfd readable = {output_.get(), POLLIN, 0};
    char c = 0;
    while (poll(&readable, 1, kPatienceMs) == 1 && read(output_.get(), &c, 1) == 1) {
      if (c == '\n') return line;
      line += c;
    }
    return line + " (and no more)";
  }
  std::string Ask(const std::string& what) const {
    Tell(what);
    return Answer();
  }

  // The exit status; -1 for a death by a signal.
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  [[noreturn]] static void Become(std::vector<std::string> words, int input, int output) {
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(125);
  }

  pid_t pid_ = 0;  // 0 once it has been waited for
  UniqueFd input_;
  UniqueFd output_;
};

// Whether the process has been reaped soon.
bool IsGoneSoon(pid_t pid) {
  const SteadyClock clock;
  const TimePoint give_up = clock.Now() + std::chrono::milliseconds(kPatienceMs);
  while (kill(pid, 0) == 0) {
    if (clock.Now() >= give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

pid_t OrphanIn(const std::string& answer) { return std::stoi(answer.substr(sizeof "orphan")); }

TEST(InitTest, KeptFilesComeBackAfterEveryDeath) {
  const InitProcess init;
  EXPECT_EQ(init.Answer(), "started with 3:");
  EXPECT_EQ(init.Ask("keep image-1 abc"), "kept");
  EXPECT_EQ(init.Ask("keep arena-1 def"), "kept");
  EXPECT_EQ(init.Ask("die"), "started with 5: arena-1=def image-1=abc");
  EXPECT_EQ(init.Ask("die"), "started with 5: arena-1=def image-1=abc");
  EXPECT_EQ(init.Ask("remove arena-1"), "removed");
  EXPECT_EQ(init.Ask("die"), "started with 4: image-1=abc");
}

TEST(InitTest, AFileKeptRightBeforeTheDeathIsKept) {
  const InitProcess init;
  init.Answer();
  EXPECT_EQ(init.Ask("keep_and_die image-1 abc"), "started with 4: image-1=abc");
}

TEST(InitTest, ManyFilesKeepTheirNames) {
  constexpr int kFiles = 100;
  const InitProcess init;
  init.Answer();
  std::string expected = "started with 103:";
  for (int i = 100; i < 100 + kFiles; ++i) {
    const std::string number = std::to_string(i);
    EXPECT_EQ(init.Ask("keep file-" + number), "kept");
    expected.append(" file-").append(number).append("=");
  }
  EXPECT_EQ(init.Ask("die"), expected);
}

TEST(InitTest, TheProgramLearnsHowMuchIsKept) {
  const InitProcess init({"--store-max", "1"});
  init.Answer();
  EXPECT_EQ(init.Ask("variable FDSTORE"), "1");
  EXPECT_EQ(init.Ask("keep image-1 abc"), "kept");
  EXPECT_THAT(init.Ask("keep image-2 abc"), StartsWith("not kept: "));
  EXPECT_EQ(init.Ask("die"), "started with 4: image-1=abc");
}

TEST(InitTest, OnlyTheProgramIsHeard) {
  const InitProcess init;
  init.Answer();
  EXPECT_EQ(init.Ask("keep image-1 abc"), "kept");
  init.Tell("say_by_another FDSTOREREMOVE=1 FDNAME=image-1");
  EXPECT_EQ(init.Ask("die"), "started with 4: image-1=abc");
}

TEST(InitTest, OrphansAreAdoptedAndReaped) {
  const InitProcess init;
  init.Answer();
  const std::string answer = init.Ask("orphan");
  EXPECT_THAT(answer, HasSubstr(" of " + std::to_string(init.pid())));
  kill(OrphanIn(answer), SIGKILL);
  EXPECT_TRUE(IsGoneSoon(OrphanIn(answer)));
}

TEST(InitTest, WhatIsLeftBehindEndsWithInit) {
  InitProcess init({}, {"/bin/sh", "-c", "(sleep 1000 &); exit 0"});
  EXPECT_EQ(init.Wait(), 0);
  EXPECT_EQ(init.Answer(), " (and no more)");  // nobody has the output any more
}

TEST(InitTest, WhatIsLeftBehindAndDoesNotEndIsKilled) {
  InitProcess init({"--grace", "0.1"});
  init.Answer();
  init.Ask("orphan");  // has SIGTERM blocked
  init.Tell("exit 0");
  EXPECT_EQ(init.Wait(), 0);
  EXPECT_EQ(init.Answer(), " (and no more)");
}

TEST(InitTest, SignalsArePassedOn) {
  InitProcess init;
  init.Answer();
  init.Signal(SIGHUP);
  EXPECT_EQ(init.Answer(), "signal 1");
  init.Signal(SIGINT);
  EXPECT_EQ(init.Answer(), "signal 2");
  EXPECT_EQ(init.Wait(), 0);
}

TEST(InitTest, AStopEndsWithTheProgramsStatus) {
  InitProcess init({}, {DRIVEN_PROGRAM, "7"});
  init.Answer();
  init.Signal(SIGTERM);
  EXPECT_EQ(init.Answer(), "signal 15");
  EXPECT_EQ(init.Wait(), 7);
}

TEST(InitTest, AStopBetweenTwoStartsEndsWithTheLastStatus) {
  InitProcess init({}, {"/bin/sh", "-c", "trap '' TERM; echo started; exit 3"});
  // Before the second start there is no pause, before the sixth one of 0.8 s.
  for (int start = 0; start < 5; ++start) EXPECT_EQ(init.Answer(), "started");
  init.Signal(SIGTERM);
  EXPECT_EQ(init.Wait(), 3);
  EXPECT_EQ(init.Answer(), " (and no more)");
}

TEST(InitTest, AStopForARestartIsFollowedByAStart) {
  const InitProcess init;
  init.Answer();
  EXPECT_EQ(init.Ask("keep image-1 abc"), "kept");
  init.Signal(SIGUSR1);
  EXPECT_EQ(init.Answer(), "signal 10");
  EXPECT_EQ(init.Answer(), "started with 4: image-1=abc");
}

TEST(InitTest, AProgramThatNeverServedAndRefusesItsFlagsIsNotTriedAgain) {
  InitProcess init;
  init.Answer();
  init.Tell("exit 2");
  EXPECT_EQ(init.Wait(), 2);
}

TEST(InitTest, OneThatServedIs) {
  const InitProcess init;
  init.Answer();
  init.Tell("say READY=1");
  EXPECT_EQ(init.Ask("exit 2"), "started with 3:");
}

TEST(InitTest, AProgramThatIsNotThereIsAnError) {
  EXPECT_EQ(InitProcess({}, {"/does/not/exist"}).Wait(), 127);
  EXPECT_EQ(InitProcess({}, {"/dev/null"}).Wait(), 126);
}

TEST(InitTest, ASilentProgramIsKilled) {
  const InitProcess init({"--watchdog", "0.1"});
  init.Answer();
  EXPECT_EQ(init.Ask("variable WATCHDOG_USEC"), "100000");
  // Only from now on is it expected to speak.
  init.Tell("say READY=1");
  EXPECT_EQ(init.Answer(), "started with 3:");
}

TEST(InitTest, WithoutAWatchdogNoneIsTold) {
  setenv("WATCHDOG_USEC", "200000", 1);
  const InitProcess init({"--watchdog", "0"});
  unsetenv("WATCHDOG_USEC");
  init.Answer();
  EXPECT_EQ(init.Ask("variable WATCHDOG_USEC"), "none");
}

TEST(InitTest, ItsOwnManagerHearsOfTheServerAndOfTheLastStop) {
  const FakeServiceManager manager;
  InitProcess init;
  init.Answer();
  init.Tell("say READY=1");
  EXPECT_EQ(manager.Await().text, "READY=1");
  init.Signal(SIGUSR1);  // a restart is no stop of the service
  EXPECT_EQ(init.Answer(), "signal 10");
  init.Answer();
  init.Signal(SIGTERM);
  EXPECT_EQ(init.Answer(), "signal 15");
  EXPECT_EQ(manager.Await().text, "STOPPING=1");
  EXPECT_EQ(init.Wait(), 0);
}

TEST(InitTest, ItsOwnManagersWatchdogIsFedAndIsTheProgramsToo) {
  const FakeServiceManager manager;
  setenv("WATCHDOG_USEC", "200000", 1);
  const InitProcess init;
  unsetenv("WATCHDOG_USEC");
  init.Answer();
  EXPECT_EQ(manager.Await().text, "WATCHDOG=1");
  EXPECT_EQ(init.Ask("variable WATCHDOG_USEC"), "200000");
}

TEST(InitTest, TheProgramStopsWhenInitDies) {
  InitProcess init;
  init.Answer();
  init.Signal(SIGKILL);
  EXPECT_EQ(init.Answer(), "signal 15");
  EXPECT_EQ(init.Wait(), -1);
}

}  // namespace
}  // namespace torpor::init
