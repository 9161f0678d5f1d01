#include "server/supervisor/supervisor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "base/mailbox.h"
#include "base/unique_fd.h"

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
  };
  void OnExecutorStarting(GpuIndex gpu, std::uint64_t epoch) override {
    events_.Send({true, gpu, epoch, 0, 0});
  }
  void OnExecutorAdopted(GpuIndex gpu, std::uint64_t epoch, pid_t process) override {
    events_.Send({true, gpu, epoch, process, 0});
  }
  void OnExecutorExited(GpuIndex gpu, std::uint64_t epoch, int signal) override {
    events_.Send({false, gpu, epoch, 0, signal});
  }
  Event Next() { return *events_.Receive(); }

 private:
  Mailbox<Event> events_{1024};
};

Supervisor::Options ShellOptions(const std::string& script) {
  Supervisor::Options options;
  options.gpus = {kGpu};
  options.command = [script](GpuIndex, std::uint64_t) {
    return ProcessCommand{"/bin/sh", {"-c", script}, {}};
  };
  options.pauses.first = std::chrono::milliseconds(1);
  return options;
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
  // The slot knows its process a moment after the listener does.
  std::atomic<bool> has_ended = false;
  std::thread killer([&] {
    while (!has_ended) {
      supervisor.Kill(kGpu, first);
      std::this_thread::yield();
    }
  });
  const Listener::Event end = listener.Next();
  has_ended = true;
  killer.join();
  EXPECT_FALSE(end.is_start);
  EXPECT_EQ(end.epoch, first);
  EXPECT_TRUE(listener.Next().is_start);
}

TEST(Supervisor, MissingProgramIsTriedAgain) {
  Listener listener;
  Supervisor::Options options = ShellOptions("");
  options.command = [](GpuIndex, std::uint64_t) {
    return ProcessCommand{"/does/not/exist", {}, {}};
  };
  Supervisor supervisor(std::move(options), listener);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(listener.Next().is_start);
}

// A process that its supervisor has left.
pid_t LeaveSleeper() {
  Listener listener;
  Supervisor::Options options = ShellOptions("");
  options.command = [](GpuIndex, std::uint64_t) {
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
  options.adopted = {{kGpu, *identity}};
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
  options.adopted = {{kGpu, {.pid = getpid(), .start_ticks = 1}}};
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
