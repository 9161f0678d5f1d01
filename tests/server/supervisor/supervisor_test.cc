#include "server/supervisor/supervisor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "base/mailbox.h"
#include "base/unique_fd.h"
#include "tests/base/temporary_folder.h"

namespace torpor::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr GpuIndex kGpu{0};

// Collects what the supervisor tells.
class Listener final : public ProcessListener {
 public:
  struct Event {
    bool is_start = false;
    GpuIndex gpu;
    std::uint64_t epoch = 0;
    pid_t adopted = 0;  // 0: started
    int signal = 0;
    bool is_spare = false;
    int seat = 0;
  };
  void OnExecutorStarting(ExecutorSeat seat, std::uint64_t epoch) override {
    events_.Send({true, seat.gpu, epoch, 0, 0, false, seat.number});
  }
  void OnExecutorAdopted(ExecutorSeat seat, std::uint64_t epoch, pid_t process) override {
    events_.Send({true, seat.gpu, epoch, process, 0, false, seat.number});
  }
  void OnExecutorExited(ExecutorSeat seat, std::uint64_t epoch, pid_t /*process*/,
                        int signal) override {
    events_.Send({false, seat.gpu, epoch, 0, signal, false, seat.number});
  }
  void OnSpareStarting(GpuIndex gpu, std::uint64_t epoch) override {
    events_.Send({true, gpu, epoch, 0, 0, true});
  }
  void OnSpareAdopted(GpuIndex gpu, std::uint64_t epoch, pid_t process) override {
    events_.Send({true, gpu, epoch, process, 0, true});
  }
  void OnSpareExited(GpuIndex gpu, std::uint64_t epoch) override {
    events_.Send({false, gpu, epoch, 0, 0, true});
  }
  Event Next() { return *events_.Receive(); }

 private:
  Mailbox<Event> events_{1024};
};

ProcessCommand Shell(const std::string& script) { return {"/bin/sh", {"-c", script}, {}}; }

Supervisor::Options ShellOptions(const std::string& script) {
  Supervisor::Options options;
  options.gpus = {kGpu};
  options.executor_command = [script](GpuIndex, std::uint64_t, int) { return Shell(script); };
  options.pauses.first = std::chrono::milliseconds(1);
  return options;
}

// Returns what the listener hears next. The slot knows its process a moment after the listener
// does.
Listener::Event KillUntilItEnds(Supervisor& supervisor, std::uint64_t epoch, Listener& listener) {
  std::atomic<bool> has_ended = false;
  std::thread killer([&] {
    while (!has_ended) {
      supervisor.Kill(kGpu, epoch);
      std::this_thread::yield();
    }
  });
  const Listener::Event next = listener.Next();
  has_ended = true;
  killer.join();
  return next;
}

TEST(Supervisor, TellsTheSignalOfAnEnd) {
  for (const auto& [script, signal] :
       {std::pair<std::string, int>{"kill -SEGV $$", SIGSEGV}, {"exit 3", 0}}) {
    Listener listener;
    Supervisor supervisor(ShellOptions(script), listener);
    EXPECT_TRUE(listener.Next().is_start);
    EXPECT_EQ(listener.Next().signal, signal);
  }
}

TEST(Supervisor, StartsAnotherAfterADeath) {
  Listener listener;
  Supervisor supervisor(ShellOptions("exit 3"), listener);
  std::uint64_t last = 0;
  for (int life = 0; life < 4; ++life) {
    const Listener::Event start = listener.Next();
    EXPECT_TRUE(start.is_start);
    EXPECT_GT(start.epoch, last);
    last = start.epoch;
    const Listener::Event end = listener.Next();
    EXPECT_FALSE(end.is_start);
    EXPECT_EQ(end.epoch, start.epoch);
  }
}

TEST(Supervisor, KillsOnlyTheEpochThatIsMeant) {
  Listener listener;
  Supervisor supervisor(ShellOptions("exec sleep 1000"), listener);
  const std::uint64_t first = listener.Next().epoch;
  supervisor.Kill(kGpu, first + 7);
  const Listener::Event end = KillUntilItEnds(supervisor, first, listener);
  EXPECT_FALSE(end.is_start);
  EXPECT_EQ(end.epoch, first);
  EXPECT_TRUE(listener.Next().is_start);
}

TEST(Supervisor, MissingProgramIsTriedAgain) {
  Listener listener;
  Supervisor::Options options = ShellOptions("");
  options.executor_command = [](GpuIndex, std::uint64_t, int) {
    return ProcessCommand{"/does/not/exist", {}, {}};
  };
  Supervisor supervisor(std::move(options), listener);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(listener.Next().is_start);
}

// Starts a sleeping executor, leaves the process, and returns its id.
pid_t LeaveSleeper() {
  Listener listener;
  Supervisor::Options options = ShellOptions("");
  options.executor_command = [](GpuIndex, std::uint64_t, int) {
    return ProcessCommand{"/bin/sh", {"-c", "exec sleep 1000"}, {}, /*outlives_parent=*/true};
  };
  Supervisor supervisor(std::move(options), listener);
  listener.Next();
  const auto find = [&] {
    for (pid_t pid = getpid() + 1;; ++pid) {
      if (supervisor.IsExecutor(pid)) return pid;
      if (pid > getpid() + 100'000) pid = getpid();
    }
  };
  const pid_t pid = find();
  supervisor.Leave();
  return pid;
}

TEST(Supervisor, GoesOnWithWhoWasLeft) {
  const pid_t left = LeaveSleeper();
  const std::optional<ProcessIdentity> identity = IdentityOf(left);
  ASSERT_TRUE(identity.has_value()) << "it lives";
  Listener listener;
  Supervisor::Options options = ShellOptions("exec sleep 1000");
  options.adopted[kGpu].executors[0] = *identity;
  Supervisor supervisor(std::move(options), listener);
  const Listener::Event adopted = listener.Next();
  EXPECT_TRUE(adopted.is_start);
  EXPECT_EQ(adopted.adopted, left);
  EXPECT_TRUE(supervisor.IsExecutor(left));
  supervisor.Kill(kGpu, adopted.epoch);
  const Listener::Event end = listener.Next();
  EXPECT_FALSE(end.is_start);
  EXPECT_EQ(end.epoch, adopted.epoch);
  const Listener::Event next = listener.Next();
  EXPECT_TRUE(next.is_start);
  EXPECT_EQ(next.adopted, 0);
  waitpid(left, nullptr, 0);
}

TEST(Supervisor, StartsAnotherForOneThatHasEndedMeanwhile) {
  Listener listener;
  Supervisor::Options options = ShellOptions("exec sleep 1000");
  options.adopted[kGpu].executors[0] = {.pid = getpid(), .start_ticks = 1};
  Supervisor supervisor(std::move(options), listener);
  const Listener::Event start = listener.Next();
  EXPECT_TRUE(start.is_start);
  EXPECT_EQ(start.adopted, 0);
}

TEST(Supervisor, StopWaitsForWhoEndsByHimself) {
  Listener listener;
  Supervisor supervisor(ShellOptions("exit 0"), listener);
  listener.Next();
  supervisor.Stop(std::chrono::seconds(60));
  EXPECT_FALSE(supervisor.IsExecutor(getpid()));
}

TEST(Supervisor, StopKillsWhoDoesNot) {
  Listener listener;
  Supervisor supervisor(ShellOptions("trap '' TERM; exec sleep 1000"), listener);
  listener.Next();
  supervisor.Stop(std::chrono::milliseconds(1));
}

// A GPU with an executor, a spare, and an owner of the memory, as sleeping shells. Each says in a
// file who it is: its role or, for executors, its place.
class SupervisorOfSpares : public testing::Test {
 protected:
  SupervisorOfSpares() {
    options_.gpus = {kGpu};
    options_.executor_command = [this](GpuIndex, std::uint64_t epoch, int place) {
      return Sleeper(std::to_string(epoch), std::to_string(place));
    };
    options_.pool_owner_command = [this](GpuIndex) {
      return Sleeper("owner" + std::to_string(owners_++), "owner");
    };
    options_.pauses.first = std::chrono::milliseconds(1);
    options_.spare_delay = {};
  }

  ProcessCommand Sleeper(const std::string& name, const std::string& said) const {
    const std::string file = folder_.path(name);
    return Shell("echo $$ " + said + " > " + file + ".new; mv " + file + ".new " + file +
                 "; exec sleep 1000");
  }
  // Waits for the sleeper of this name; returns its process and role.
  std::pair<pid_t, std::string> Said(const std::string& name) const {
    while (true) {
      std::ifstream file(folder_.path(name));
      std::pair<pid_t, std::string> said;
      if (file >> said.first >> said.second) return said;
      std::this_thread::yield();
    }
  }
  std::pair<pid_t, std::string> Said(const Listener::Event& start) const {
    return Said(std::to_string(start.epoch));
  }

  const TemporaryFolder folder_;
  std::atomic<int> owners_ = 0;
  Supervisor::Options options_;
  Listener listener_;
};

TEST_F(SupervisorOfSpares, TheSpareTakesOver) {
  Supervisor supervisor(options_, listener_);
  const Listener::Event first = listener_.Next();
  EXPECT_FALSE(first.is_spare);
  EXPECT_EQ(Said(first).second, "0");
  EXPECT_EQ(Said("owner0").second, "owner");
  supervisor.KeepSpare(kGpu);
  const Listener::Event spare = listener_.Next();
  EXPECT_TRUE(spare.is_start);
  EXPECT_TRUE(spare.is_spare);
  EXPECT_EQ(Said(spare).second, "1") << "it has a place of its own";
  EXPECT_TRUE(supervisor.IsExecutor(Said(spare).first));

  kill(Said(first).first, SIGKILL);
  const Listener::Event end = listener_.Next();
  EXPECT_FALSE(end.is_start);
  EXPECT_EQ(end.epoch, first.epoch);
  const Listener::Event next = listener_.Next();
  EXPECT_TRUE(next.is_start);
  EXPECT_FALSE(next.is_spare);
  EXPECT_EQ(next.epoch, spare.epoch) << "no other process was started";

  supervisor.KeepSpare(kGpu);
  const Listener::Event second = listener_.Next();
  EXPECT_TRUE(second.is_spare);
  EXPECT_EQ(Said(second).second, "0") << "the place is free";
  EXPECT_EQ(owners_, 1) << "the memory's owner lives on";
}

TEST_F(SupervisorOfSpares, ASpareThatEndsIsReplaced) {
  Supervisor supervisor(options_, listener_);
  listener_.Next();
  supervisor.KeepSpare(kGpu);
  const Listener::Event first = listener_.Next();
  const Listener::Event end = KillUntilItEnds(supervisor, first.epoch, listener_);
  EXPECT_FALSE(end.is_start);
  EXPECT_TRUE(end.is_spare);
  EXPECT_EQ(end.epoch, first.epoch);
  const Listener::Event second = listener_.Next();
  EXPECT_TRUE(second.is_start);
  EXPECT_TRUE(second.is_spare);
}

TEST_F(SupervisorOfSpares, WithoutTheMemorysOwnerAllStartAnew) {
  Supervisor supervisor(options_, listener_);
  const Listener::Event executor = listener_.Next();
  supervisor.KeepSpare(kGpu);
  const Listener::Event spare = listener_.Next();
  Said(executor), Said(spare);
  kill(Said("owner0").first, SIGKILL);
  std::set<std::uint64_t> ended = {listener_.Next().epoch, listener_.Next().epoch};
  EXPECT_EQ(ended, (std::set{executor.epoch, spare.epoch}));
  const Listener::Event next = listener_.Next();
  EXPECT_TRUE(next.is_start);
  EXPECT_FALSE(next.is_spare);
  EXPECT_GT(next.epoch, spare.epoch);
  EXPECT_EQ(Said("owner1").second, "owner");
  Said(next);
  kill(Said(next).first, SIGKILL);
  EXPECT_EQ(listener_.Next().epoch, next.epoch);
  EXPECT_FALSE(listener_.Next().is_spare) << "none before the GPU is served";
}

TEST_F(SupervisorOfSpares, NoneIsKeptWhereExecutorsOwnTheMemory) {
  options_.pool_owner_command = nullptr;
  Supervisor supervisor(options_, listener_);
  const Listener::Event first = listener_.Next();
  supervisor.KeepSpare(kGpu);
  kill(Said(first).first, SIGKILL);
  EXPECT_EQ(listener_.Next().epoch, first.epoch);
  EXPECT_FALSE(listener_.Next().is_spare);
}

TEST_F(SupervisorOfSpares, TheSpareTakesANewlyWantedSeat) {
  Supervisor supervisor(options_, listener_);
  const Listener::Event first = listener_.Next();
  supervisor.KeepSpare(kGpu);
  const Listener::Event spare = listener_.Next();
  Said(spare);
  supervisor.Want({kGpu, 1});
  const Listener::Event second = listener_.Next();
  EXPECT_FALSE(second.is_spare);
  EXPECT_EQ(second.seat, 1);
  EXPECT_EQ(second.epoch, spare.epoch) << "no other process was started";
  supervisor.Want({kGpu, 2});
  const Listener::Event third = listener_.Next();
  EXPECT_EQ(third.seat, 2);
  EXPECT_EQ(Said(third).second, "2") << "the others have their places";

  kill(Said(first).first, SIGKILL);
  const Listener::Event end = listener_.Next();
  EXPECT_EQ(end.epoch, first.epoch);
  EXPECT_EQ(end.seat, 0);
  const Listener::Event next = listener_.Next();
  EXPECT_EQ(next.seat, 0) << "its own seat, and no other";
  EXPECT_GT(next.epoch, third.epoch);
}

TEST_F(SupervisorOfSpares, AReplacedExecutorComesBackWithoutAPause) {
  options_.pauses.first = std::chrono::hours(1);
  options_.pauses.longest = std::chrono::hours(1);
  Supervisor supervisor(options_, listener_);
  Listener::Event executor = listener_.Next();
  for (int i = 0; i < 3; ++i) {
    Said(executor);
    supervisor.Replace(kGpu, executor.epoch);
    const Listener::Event end = listener_.Next();
    EXPECT_EQ(end.epoch, executor.epoch);
    executor = listener_.Next();
    EXPECT_TRUE(executor.is_start);
  }
}

TEST_F(SupervisorOfSpares, GoesOnWithAllThreeThatWereLeft) {
  const auto left = [this](const std::string& name) {
    const ProcessCommand command = Sleeper(name, name);
    auto process =
        *ChildProcess::Start({command.program, command.arguments, {}, /*outlives_parent=*/true});
    process->Leave();
    return *IdentityOf(process->pid());
  };
  GpuProcesses& gpu = options_.adopted[kGpu];
  gpu = {.executors = {{1, left("executor")}},
         .spares = {{0, left("spare")}},
         .pool_owner = left("pool")};
  Supervisor supervisor(options_, listener_);
  const Listener::Event executor = listener_.Next();
  EXPECT_EQ(executor.adopted, gpu.executors.at(1).pid);
  EXPECT_FALSE(executor.is_spare);
  const Listener::Event spare = listener_.Next();
  EXPECT_EQ(spare.adopted, gpu.spares.at(0).pid);
  EXPECT_TRUE(spare.is_spare);
  kill(gpu.executors.at(1).pid, SIGKILL);
  EXPECT_EQ(listener_.Next().epoch, executor.epoch);
  EXPECT_EQ(listener_.Next().epoch, spare.epoch);
  supervisor.KeepSpare(kGpu);
  EXPECT_EQ(Said(listener_.Next()).second, "1") << "the first executor's";
  EXPECT_EQ(owners_, 0);
}

TEST(RunForOutput, TheProgramHasNoDescriptorOfOurs) {
  // Not close-on-exec, and none that the shell opens by itself.
  constexpr int kLeast = 100;
  const UniqueFd ours(fcntl(STDERR_FILENO, F_DUPFD, kLeast));
  const auto output =
      RunForOutput({"/bin/sh", {"-c", "echo /proc/$$/fd/*"}, {}}, std::chrono::seconds(10));
  ASSERT_TRUE(output.ok());
  EXPECT_THAT(*output, Not(HasSubstr("/fd/" + std::to_string(ours.get()))));
}

TEST(RunForOutput, GivesStandardOutput) {
  const auto output = RunForOutput({"/bin/sh", {"-c", "echo $TORPOR_TEST"}, {"TORPOR_TEST=hello"}},
                                   std::chrono::seconds(10));
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(*output, "hello\n");
}

TEST(RunForOutput, FailsAsTheProgramFails) {
  EXPECT_FALSE(RunForOutput({"/bin/false", {}, {}}, std::chrono::seconds(10)).ok());
  EXPECT_FALSE(RunForOutput({"/does/not/exist", {}, {}}, std::chrono::seconds(10)).ok());
}

TEST(RunForOutput, DoesNotWaitForEver) {
  const auto output =
      RunForOutput({"/bin/sh", {"-c", "exec sleep 1000"}, {}}, std::chrono::milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(output.status()));
}

}  // namespace
}  // namespace torpor::server
