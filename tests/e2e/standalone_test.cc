// `torporctl run --standalone`: a program with a private daemon, and how each of them may end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/base/temporary_folder.h"
#include "tests/e2e/await.h"
#include "tests/e2e/child_process.h"
#include "tests/e2e/http_posts.h"

namespace torpor::e2e {
namespace {

using testing::HasSubstr;

const std::string kTorporctl = std::string(TORPOR_BIN_DIR) + "/torporctl";
const std::string kVectorAdd = std::string(PROGRAM_DIR) + "/vector_add";

constexpr const char* kThreeGpus = R"(version: v1
gpus:
  - memory: 256MiB
    count: 2
  - memory: 512MiB
)";

using ProcessCommand = std::vector<std::string>;

ProcessCommand Shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

class Standalone : public testing::Test {
 protected:
  std::unique_ptr<ChildProcess> Start(const ProcessCommand& program,
                                      const ProcessCommand& options = {}) const {
    ProcessCommand command = {kTorporctl, "run", "--standalone"};
    command.insert(command.end(), options.begin(), options.end());
    command.emplace_back("--");
    command.insert(command.end(), program.begin(), program.end());
    return std::make_unique<ChildProcess>(
        command, ChildProcess::Options{folder_.path(),
                                       {{"TMPDIR", temporary_.path()},
                                        // The programs' PTX is for sm_90.
                                        {"TORPOR_EMULATOR_COMPUTE_CAPABILITY", "12.0"}}});
  }

  // A server whose POST /work keeps the GPU busy; it listens at *address.
  std::unique_ptr<ChildProcess> StartServer(std::string* address) const {
    auto server = Start({std::string(DRIVEN_DIR) + "/state_server"});
    const std::string line = server->WaitForLine("listening on", kPatience);
    EXPECT_NE(line, "") << server->Stderr();
    *address = line.substr(line.rfind(' ') + 1);
    return server;
  }

  // Neither a file nor, of `processes`, a process.
  void ExpectNothingLeft(const std::vector<pid_t>& processes) const {
    for (const pid_t process : processes) {
      EXPECT_TRUE(WaitUntilGone(process, kPatience)) << ProgramNameOf(process);
    }
    EXPECT_TRUE(std::filesystem::is_empty(temporary_.path()));
  }

  const TemporaryFolder folder_;
  const TemporaryFolder temporary_;  // where the private daemons live
};

TEST_F(Standalone, EndsWithTheProgramsStatus) {
  const auto run = Start(Shell("echo out; echo err >&2; exit 7"));
  EXPECT_EQ(run->Wait(kPatience), 7);
  EXPECT_EQ(run->Stdout(), "out\n");
  EXPECT_EQ(run->Stderr(), "err\n");
}

TEST_F(Standalone, ADeathBySignalIs128AndItsNumber) {
  EXPECT_EQ(Start(Shell("kill -TERM $$"))->Wait(kPatience), 128 + SIGTERM);
  EXPECT_EQ(Start(Shell("kill -SEGV $$"))->Wait(kPatience), 128 + SIGSEGV);
}

TEST_F(Standalone, StdoutPassesThroughToTheByte) {
  std::string bytes;
  for (unsigned i = 0; i < 1U << 20; ++i) bytes += static_cast<char>(i * 7919U >> 5);
  const std::string file = folder_.Write("bytes", bytes);
  const auto run = Start({"/bin/cat", file});
  EXPECT_EQ(run->Wait(kPatience), 0);
  EXPECT_TRUE(run->Stdout() == bytes) << run->Stdout().size() << " bytes";
}

TEST_F(Standalone, VisibleDevicesChooseTheDaemonsGpus) {
  ProcessCommand command = {kTorporctl, "run", "--standalone", "--topology", "demo-2gpu", "--"};
  const ProcessCommand program = Shell("echo ${CUDA_VISIBLE_DEVICES-none}; exec " + kVectorAdd);
  command.insert(command.end(), program.begin(), program.end());
  ChildProcess run(
      command, {folder_.path(),
                {{"CUDA_VISIBLE_DEVICES", "1"}, {"TORPOR_EMULATOR_COMPUTE_CAPABILITY", "12.0"}}});
  EXPECT_EQ(run.Wait(kPatience), 0) << run.Stderr();
  EXPECT_EQ(run.Stdout(), "none\nPASS\n");
}

TEST_F(Standalone, FailedAssertionsAreToldOnTheProgramsStderr) {
  const auto run = Start({std::string(PROGRAM_DIR) + "/device_assert"});
  EXPECT_EQ(run->Wait(kPatience), 0) << run->Stderr();
  EXPECT_EQ(run->Stdout(), "PASS\n");
  for (const char* const thread : {"[7,0,0]", "[31,0,0]"}) {
    EXPECT_NE(run->Stderr().find(std::string(": block: [0,0,0], thread: ") + thread +
                                 " Assertion `static_cast<int>(threadIdx.x) < *limit` failed.\n"),
              std::string::npos)
        << run->Stderr();
  }
}

TEST_F(Standalone, KernelsPrintToTheProgramsStdout) {
  const auto run = Start({std::string(PROGRAM_DIR) + "/print"});
  EXPECT_EQ(run->Wait(kPatience), 0) << run->Stderr();
  EXPECT_EQ(run->Stdout(),
            "before\nkernel 1, block 0 of three\nbetween\nkernel 2, block 0 of three\n"
            "kernel 3, block 0 of three\nkernel 4, block 0 of three\nPASS\n");
}

TEST_F(Standalone, RunsTheExamplesOnTheGpuThatNobodyDescribed) {
  ChildProcess server(
      {kTorporctl, "run", "--standalone", "--", std::string(TORPOR_BIN_DIR) + "/examples/digits"},
      {folder_.path(), {{"TMPDIR", temporary_.path()}}});
  // Its model is on the GPU then, and has answered.
  EXPECT_NE(server.WaitForLine("listening on", kPatience), "") << server.Stderr();
}

TEST_F(Standalone, WhatCannotBeRunIsToldAsAShellDoes) {
  const auto missing = Start({"./no-such-program"});
  EXPECT_EQ(missing->Wait(kPatience), 127);
  EXPECT_THAT(missing->Stderr(), HasSubstr("torporctl: ./no-such-program: no such program\n"));
  const auto data = Start({folder_.Write("data", "x")});
  EXPECT_EQ(data->Wait(kPatience), 126);
  EXPECT_THAT(data->Stderr(), HasSubstr("chmod +x"));
}

TEST_F(Standalone, WrongOptionsAreStatus2) {
  EXPECT_EQ(Start({kVectorAdd}, {"--topology", "/nowhere.yaml"})->Wait(kPatience), 2);
  EXPECT_EQ(Start({kVectorAdd}, {"--function", "digits"})->Wait(kPatience), 2);
  EXPECT_EQ(Start({})->Wait(kPatience), 2);
}

TEST_F(Standalone, ADaemonThatDoesNotStartIsStatus125AndItsLogIsShown) {
  const auto run = Start({kVectorAdd}, {"--topology", folder_.Write("bad.yaml", "gpus: many\n")});
  EXPECT_EQ(run->Wait(kPatience), 125);
  EXPECT_THAT(run->Stderr(), HasSubstr("bad.yaml"));
  EXPECT_EQ(run->Stdout(), "");
  ExpectNothingLeft({});
}

TEST_F(Standalone, ServesTheGpusOfTheTopologyFile) {
  // The program runs as soon as one GPU is ready; the status is asked until all of them are.
  const std::string status =
      kTorporctl + " status --output json --socket ${TORPOR_SOCKET%/*}/admin.sock";
  const auto run =
      Start(Shell(kVectorAdd + " >&2; while text=$(" + status + ") && echo \"$text\" | " +
                  "grep -Eq '\"pool_bytes\": ?0([^0-9]|$)'; do :; done; echo \"$text\""),
            {"--topology", folder_.Write("topology.yaml", kThreeGpus)});
  EXPECT_EQ(run->Wait(kPatience), 0) << run->Stderr();
  const auto gpus = nlohmann::json::parse(run->Stdout(), nullptr, false).at("gpus");
  ASSERT_EQ(gpus.size(), 3U) << run->Stdout();
  EXPECT_EQ(gpus[0].at("pool_bytes"), gpus[1].at("pool_bytes"));
  EXPECT_GT(gpus[2].at("pool_bytes"), gpus[1].at("pool_bytes"));
}

TEST_F(Standalone, TheTopologyMayBeAPreset) {
  const auto run = Start(Shell("test -f ${TORPOR_SOCKET%/*}/gpus/emulator-node && " + kVectorAdd),
                         {"--gpus", "2", "--topology", "demo-2gpu"});
  EXPECT_EQ(run->Wait(kPatience), 0) << run->Stderr();
  ExpectNothingLeft({});
}

TEST_F(Standalone, AProgramCannotHaveMoreGpusThanThereAre) {
  const auto run = Start({kVectorAdd},
                         {"--gpus", "4", "--topology", folder_.Write("topology.yaml", kThreeGpus)});
  EXPECT_EQ(run->Wait(kPatience), 125);
  EXPECT_THAT(run->Stderr(), HasSubstr("asks for 4 GPUs, and this node serves 3"));
  EXPECT_EQ(Start({kVectorAdd}, {"--gpus", "0"})->Wait(kPatience), 2);
}

TEST_F(Standalone, SeveralRunAtOnce) {
  std::vector<std::unique_ptr<ChildProcess>> runs;
  runs.reserve(4);
  for (int i = 0; i < 4; ++i) runs.push_back(Start({kVectorAdd}));
  for (const auto& run : runs) {
    EXPECT_EQ(run->Wait(kPatience), 0) << run->Stderr();
    EXPECT_EQ(run->Stdout(), "PASS\n");
  }
  ExpectNothingLeft({});
}

TEST_F(Standalone, SignalsReachTheProgram) {
  const std::vector<std::pair<std::string, int>> signals = {
      {"INT", SIGINT}, {"TERM", SIGTERM}, {"HUP", SIGHUP}, {"USR1", SIGUSR1}};
  for (const auto& [name, number] : signals) {
    const auto run =
        Start(Shell("trap 'exit 42' " + name + "; echo ready; while :; do sleep 0.05; done"));
    ASSERT_EQ(run->WaitForLine("ready", kPatience), "ready") << run->Stderr();
    const std::vector<pid_t> processes = DescendantsOf(run->pid());
    run->Signal(number);
    EXPECT_EQ(run->Wait(kPatience), 42) << name;
    ExpectNothingLeft(processes);
  }
}

TEST_F(Standalone, TheProgramOutlivesItsDaemonAndIsToldByAnError) {
  std::string address;
  const auto server = StartServer(&address);
  const std::vector<pid_t> processes = DescendantsOf(server->pid());
  ASSERT_EQ(PostAll(address, {{"/add", R"({"value":[1]})"}}).front().status, 200);
  Reply in_flight;
  std::thread request([&] {
    in_flight = PostAll(address, {{"/work", R"({"ms":[60000]})"}}).front();
  });
  for (const pid_t process : processes) {
    if (ProgramNameOf(process) == "torpord") kill(process, SIGKILL);
  }
  request.join();
  EXPECT_EQ(in_flight.status, 500) << in_flight.body;
  EXPECT_THAT(in_flight.body, HasSubstr("cudaError"));
  EXPECT_FALSE(server->Wait(Duration::zero()).has_value());
  const std::string news = "torporctl: the private torpord died";
  const auto is_told = [&] { return server->Stderr().find(news) != std::string::npos; };
  ASSERT_EQ(Await("torporctl says that its torpord died", is_told), absl::OkStatus())
      << server->Stderr();

  server->Signal(SIGTERM);
  EXPECT_EQ(server->Wait(kPatience), 128 + SIGTERM);
  ExpectNothingLeft(processes);
}

TEST_F(Standalone, NoProcessOutlivesAKilledTorporctl) {
  std::string address;
  const auto server = StartServer(&address);
  const std::vector<pid_t> processes = DescendantsOf(server->pid());
  EXPECT_GE(processes.size(), 3U);  // the program, the daemon, an executor
  kill(server->pid(), SIGKILL);
  EXPECT_EQ(server->Wait(kPatience), 128 + SIGKILL);
  for (const pid_t process : processes) {
    EXPECT_TRUE(WaitUntilGone(process, kPatience)) << ProgramNameOf(process);
  }
}

TEST_F(Standalone, TellsHowLongItTakesToBeReady) {
  const SteadyClock clock;
  const TimePoint begin = clock.Now();
  const auto run = Start(Shell("echo ready"));
  EXPECT_EQ(run->WaitForLine("ready", kPatience), "ready");
  const double ms = ToMilliseconds(clock.Now() - begin);
  // The aim is 2 s; a time is told, and never fails a test.
  RecordProperty("ready_ms", static_cast<int>(ms));
  std::printf("the program began %.0f ms after torporctl\n", ms);
}

}  // namespace
}  // namespace torpor::e2e
