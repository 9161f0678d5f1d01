#include "server/processes/function_processes.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <set>
#include <utility>

#include "tests/server/processes/scripts.h"

namespace torpor::server {
namespace {

// Says its number, and lives until SIGTERM.
constexpr const char* kLives = "echo $$ > $PIPE; exec sleep 1000";

class FunctionProcessesTest : public ScriptTest {
 protected:
  std::unique_ptr<FunctionProcesses> Start(const FunctionProcesses::Commands& commands,
                                           bool sessions_go_on = true) const {
    auto processes =
        FunctionProcesses::Start({.record_dir = folder_.path("processes"),
                                  .pauses = {.first = std::chrono::milliseconds(1),
                                             .longest = std::chrono::milliseconds(20),
                                             .healthy_after = std::chrono::seconds(10)},
                                  .sessions_go_on = sessions_go_on},
                                 commands);
    EXPECT_TRUE(processes.ok()) << processes.status();
    (*processes)->SetCommands(commands);
    return *std::move(processes);
  }
  static bool IsThere(pid_t pid) { return IdentityOf(pid).has_value(); }
  static void AwaitEnd(pid_t pid) {
    const UniqueFd descriptor = OpenProcess(IdentityOf(pid).value_or(ProcessIdentity{pid}));
    pollfd ended = {descriptor.get(), POLLIN, 0};
    if (!descriptor) return;
    EXPECT_EQ(poll(&ended, 1, 30'000), 1);
  }
  static ProcessSnapshot AwaitState(const FunctionProcesses& processes, const std::string& name,
                                    const std::string& state) {
    const TimePoint give_up = SteadyClock().Now() + std::chrono::seconds(30);
    while (SteadyClock().Now() < give_up) {
      const auto snapshot = processes.Snapshot();
      const auto found = snapshot.find(name);
      if (found != snapshot.end() && found->second.state == state) return found->second;
      std::this_thread::yield();
    }
    ADD_FAILURE() << name << " is not " << state;
    return {};
  }
};

TEST_F(FunctionProcessesTest, AProcessThatEndsIsStartedAgain) {
  const auto processes = Start({{"digits", Script("echo $$ > $PIPE; exit 3")}});
  std::set<pid_t> seen;
  for (int life = 0; life < 5; ++life) EXPECT_TRUE(seen.insert(Number()).second);
  processes->Stop();
  EXPECT_TRUE(processes->Snapshot().empty());
}

TEST_F(FunctionProcessesTest, AKilledOneToo) {
  const auto processes = Start({{"digits/a", Script(kLives)}});
  const pid_t first = Number();
  EXPECT_EQ(AwaitState(*processes, "digits/a", "running").pid, first);
  kill(first, SIGKILL);
  const pid_t second = Number();
  EXPECT_NE(second, first);
  ProcessSnapshot snapshot;
  do {
    snapshot = AwaitState(*processes, "digits/a", "running");
  } while (snapshot.pid == first);
  EXPECT_EQ(snapshot.pid, second);
  EXPECT_EQ(snapshot.restarts, 1u);
  EXPECT_EQ(snapshot.last_end, "signal 9");
  processes->Stop();
  EXPECT_FALSE(IsThere(second));
}

TEST_F(FunctionProcessesTest, OneThatCannotBeStartedSaysWhy) {
  const auto processes = Start({{"digits", {.words = {"/no/such/program"}}}});
  EXPECT_THAT(AwaitState(*processes, "digits", "pausing").last_end,
              testing::HasSubstr("/no/such/program"));
  processes->Stop();
}

TEST_F(FunctionProcessesTest, TheNextTorporAdoptsAndStartsNoSecondOne) {
  const FunctionProcesses::Commands commands = {{"digits", Script(kLives)},
                                                {"encoder/b", Script(kLives)}};
  std::set<std::int64_t> first;
  {
    const auto processes = Start(commands);
    first = {Number(), Number()};
    processes->Leave();
  }
  const auto processes = Start(commands);
  const std::set<std::int64_t> adopted = {AwaitState(*processes, "digits", "running").pid,
                                          AwaitState(*processes, "encoder/b", "running").pid};
  EXPECT_EQ(adopted, first);
  // An adopted one is watched, too.
  kill(static_cast<pid_t>(*first.begin()), SIGKILL);
  EXPECT_FALSE(first.contains(Number()));
  processes->Stop();
  for (const auto pid : first) EXPECT_FALSE(IsThere(static_cast<pid_t>(pid)));
}

TEST_F(FunctionProcessesTest, ADeadOnesRecordIsForgotten) {
  const FunctionProcesses::Commands commands = {{"digits", Script(kLives)}};
  auto processes = Start(commands);
  const pid_t first = Number();
  processes->Leave();
  kill(first, SIGKILL);
  AwaitEnd(first);
  processes = Start(commands);
  const pid_t second = Number();
  EXPECT_NE(second, first);
  processes->Stop();
}

TEST_F(FunctionProcessesTest, WithoutTheirSessionsProcessesAreStartedAnew) {
  const FunctionProcesses::Commands commands = {{"digits", Script(kLives)}};
  auto processes = Start(commands);
  const pid_t first = Number();
  processes->Leave();
  processes = Start(commands, /*sessions_go_on=*/false);
  EXPECT_NE(Number(), first);
  EXPECT_FALSE(IsThere(first));
  processes->Stop();
}

TEST_F(FunctionProcessesTest, WhatHasNoCommandAnyMoreIsEndedAtTheStart) {
  auto processes = Start({{"digits", Script(kLives)}});
  const pid_t first = Number();
  processes->Leave();
  processes = Start({});
  AwaitEnd(first);
  processes->Stop();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("processes")));
}

TEST_F(FunctionProcessesTest, AnotherCommandIsAnotherProcess) {
  const auto processes = Start({{"digits", Script(kLives)}});
  const pid_t first = Number();
  processes->SetCommands({{"digits", Script(kLives)}});
  processes->SetCommands({{"digits", Script(std::string(kLives) + "00")}});
  const pid_t second = Number();
  EXPECT_NE(second, first);
  EXPECT_FALSE(IsThere(first));
  processes->Stop();
}

TEST_F(FunctionProcessesTest, ACommandThatWasMendedIsStartedAtOnce) {
  const auto processes = FunctionProcesses::Start(
      {.record_dir = folder_.path("processes"),
       .pauses = {.first = std::chrono::hours(1), .longest = std::chrono::hours(1)}},
      {});
  ASSERT_TRUE(processes.ok());
  (*processes)->SetCommands({{"digits", Script("echo $$ > $PIPE; exit 1")}});
  Number();
  Number();
  AwaitState(**processes, "digits", "pausing");
  (*processes)->SetCommands({{"digits", Script(kLives)}});
  Number();
  (*processes)->Stop();
}

TEST_F(FunctionProcessesTest, ARemovedOneLivesUntilNothingRunsThere) {
  const auto processes = Start({{"digits", Script(kLives)}});
  const pid_t first = Number();
  AwaitState(*processes, "digits", "running");
  processes->SetCommands({});
  EXPECT_TRUE(IsThere(first));
  EXPECT_EQ(AwaitState(*processes, "digits", "running").pid, first);
  processes->OnRemoved("digits");
  AwaitEnd(first);
  processes->Stop();
}

TEST_F(FunctionProcessesTest, OneThatWasAddedAgainIsStartedAnew) {
  const auto processes = Start({{"digits", Script(kLives)}});
  const pid_t first = Number();
  processes->SetCommands({});
  processes->SetCommands({{"digits", Script(kLives)}});
  processes->OnRemoved("digits");  // of the old one
  EXPECT_NE(Number(), first);
  EXPECT_FALSE(IsThere(first));
  processes->Stop();
}

TEST_F(FunctionProcessesTest, ABrokenOneIsStartedAnew) {
  const auto processes = Start({{"digits", Script(kLives)}});
  const pid_t first = Number();
  processes->OnBroken("digits", "its CUDA has a sticky error");
  processes->OnBroken("nobody", "");
  EXPECT_NE(Number(), first);
  EXPECT_FALSE(IsThere(first));
  processes->Stop();
}

TEST_F(FunctionProcessesTest, OneThatDoesNotEndIsKilled) {
  InstanceCommand stubborn = Script("trap '' TERM; echo $$ > $PIPE; while :; do sleep 1000; done");
  stubborn.stop_grace = std::chrono::milliseconds(20);
  const auto processes = Start({{"digits", stubborn}});
  const pid_t first = Number();
  processes->Stop();
  EXPECT_FALSE(IsThere(first));
}

TEST(AddProcesses, AFunctionIsAsTheLeastOfItsInstances) {
  NodeSnapshot node;
  node.functions.resize(3);
  node.functions[0].name = "digits";
  node.functions[0].instances.resize(2);
  node.functions[0].instances[0].name = "a";
  node.functions[0].instances[1].name = "b";
  node.functions[1].name = "dig";
  node.functions[2].name = "encoder";
  AddProcesses({{"digits/a", {.state = "running", .pid = 5, .restarts = 2}},
                {"digits/b", {.state = "pausing", .restarts = 3, .last_end = "signal 9"}},
                {"encoder", {.state = "running", .pid = 7, .restarts = 1}}},
               node);
  EXPECT_EQ(node.functions[0].instances[0].process.pid, 5);
  EXPECT_EQ(node.functions[0].instances[1].process.state, "pausing");
  EXPECT_EQ(node.functions[0].process.state, "pausing");
  EXPECT_EQ(node.functions[0].process.restarts, 5u);
  EXPECT_EQ(node.functions[0].process.pid, 0);
  EXPECT_EQ(node.functions[1].process.state, "");
  EXPECT_EQ(node.functions[2].process.pid, 7);
  EXPECT_EQ(node.functions[2].process.restarts, 1u);
}

}  // namespace
}  // namespace torpor::server
