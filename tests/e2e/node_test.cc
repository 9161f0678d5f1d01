// A real torpord with emulated GPUs, real functions, and what may happen to them.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

extern "C" {
#include <sys/pidfd.h>  // of glibc 2.36: has no linkage of its own
}
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "emulator/node/model_account.h"
#include "tests/e2e/address_mode.h"
#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::e2e {
namespace {

constexpr const char* kOneSmallGpu = R"(version: v1
gpus:
  - memory: 96MiB
)";

// Two of these do not fit a small GPU together.
constexpr int kMegabytes = 48;
constexpr std::uint64_t kElements = std::uint64_t{kMegabytes} << 18;

std::vector<std::string> StateServer() {
  return {std::string(DRIVEN_DIR) + "/state_server", "--megabytes", std::to_string(kMegabytes)};
}
std::vector<std::string> LazyStateServer() {
  std::vector<std::string> command = StateServer();
  command.insert(command.end(), {"--lazy", "1"});
  return command;
}

std::string Sum(std::uint64_t per_element) {
  return "{\"sum\":" + std::to_string(per_element * kElements) + "}\n";
}

std::string AddPath(const std::string& function) { return "/function/" + function + "/add"; }
std::string WorkPath(const std::string& function) { return "/function/" + function + "/work"; }
std::string Value(int value) { return "{\"value\":[" + std::to_string(value) + "]}"; }

int RunningOn(const nlohmann::json& status, const std::string& function) {
  for (const auto& gpu : status.at("gpus")) {
    if (gpu.at("leased_to") == function) return gpu.at("gpu").get<int>();
  }
  return -1;
}

class Node : public testing::Test {
 protected:
  // Those that are started have given back the GPU that they held while they came up: who holds one
  // later does so for a request.
  void Start(const std::string& topology, const std::vector<std::string>& functions,
             const std::vector<std::string>& started, int gpus = 1,
             const std::string& settings = "", const std::string& function_setting = "") {
    node_ = std::make_unique<EmulatedNode>(topology, functions, settings, gpus, function_setting);
    node_->Start();
    for (const std::string& name : started) {
      if (!HasFatalFailure()) node_->StartFunction(name, StateServer());
    }
    for (const std::string& name : started) {
      if (!HasFatalFailure()) WaitUntilIdle(name);
    }
  }

  // Until the function holds a GPU; then its number.
  int WaitUntilRunning(const std::string& function) {
    int gpu = -1;
    const auto runs = [&] { return (gpu = RunningOn(node_->Status(), function)) >= 0; };
    EXPECT_EQ(Await(function + " runs", runs), absl::OkStatus()) << node_->Logs();
    return std::max(gpu, 0);
  }

  // Until the function holds no GPU, and what it did there is in its image.
  void WaitUntilIdle(const std::string& function) {
    const auto is_idle = [&] { return RunningOn(node_->Status(), function) < 0; };
    ASSERT_EQ(Await(function + " has given its GPU back", is_idle), absl::OkStatus())
        << node_->Logs();
    node_->Torporctl({"checkpoint", function});
  }

  void TearDown() override {
    if (HasFailure() && node_ != nullptr) std::fputs(node_->Logs().c_str(), stderr);
  }

  std::unique_ptr<EmulatedNode> node_;
};

TEST_F(Node, FunctionsThatDoNotFitTogetherSwapAndKeepTheirState) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a", "b"}, {"a", "b"}));
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const Reply a = node_->PostOne(AddPath("a"), Value(1));
    const Reply b = node_->PostOne(AddPath("b"), Value(3));
    EXPECT_EQ(a.status, 200) << a.body;
    EXPECT_EQ(b.status, 200) << b.body;
    EXPECT_EQ(a.body, Sum(round));
    EXPECT_EQ(b.body, Sum(3 * round));
    if (round > 1) {
      EXPECT_EQ(a.headers.at("x-torpor-swap"), "host");
      EXPECT_EQ(b.headers.at("x-torpor-swap"), "host");
    }
  }
  EXPECT_EQ(node_->PostOne(AddPath("b"), Value(0)).headers.at("x-torpor-swap"), "resident");
}

TEST_F(Node, ConcurrentRequestsQueueAndAreAllAnswered) {
  ASSERT_NO_FATAL_FAILURE(Start(kTwoSmallGpus, {"a", "b", "c"}, {"a", "b", "c"}));
  std::vector<Post> posts;
  for (int i = 0; i < 12; ++i) {
    for (const char* name : {"a", "b", "c"}) posts.push_back({AddPath(name), Value(1)});
  }
  for (const Reply& reply : node_->PostAll(posts)) EXPECT_EQ(reply.status, 200) << reply.body;
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(node_->PostOne(AddPath(name), Value(0)).body, Sum(12));
  }
}

TEST_F(Node, TheDaemonsExecutorsAreOnOneEmulatedNode) {
  ASSERT_NO_FATAL_FAILURE(Start(kTwoLinkedGpus, {"a", "b"}, {"a", "b"}));
  const std::string path = node_->folder().path() + "/gpus/emulator-node";
  auto account = emulator::ModelAccount::Open(path);
  ASSERT_TRUE(account.ok()) << account.failure().message;
  account->Reset();
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(node_->PostOne(AddPath(name), Value(1)).body, Sum(1));
  }
  EXPECT_GT(account->Read().copies.count, 0U);
  EXPECT_GT(account->Read().copies.modelled, Duration::zero());
}

TEST_F(Node, AKilledExecutorCostsOnlyTheRequestInFlight) {
  ASSERT_NO_FATAL_FAILURE(Start(kTwoSmallGpus, {"a", "b"}, {"a", "b"}, 1, "", "durability: none"));
  const pid_t daemon = node_->daemon().pid();
  Reply in_flight;
  std::thread request([&] { in_flight = node_->PostOne(WorkPath("a"), R"({"ms":[60000]})"); });
  const int gpu = WaitUntilRunning("a");
  const auto executor = node_->Status().at("gpus").at(static_cast<std::size_t>(gpu));
  ASSERT_EQ(kill(executor.at("executor_pid").get<pid_t>(), SIGKILL), 0);
  request.join();
  EXPECT_EQ(in_flight.status, 502) << in_flight.body;

  for (int i = 1; i <= 3; ++i) {
    const Reply later = node_->PostOne(AddPath("b"), Value(1));
    EXPECT_EQ(later.status, 200) << later.body;
    EXPECT_EQ(later.body, Sum(static_cast<std::uint64_t>(i)));
  }
  EXPECT_FALSE(node_->daemon().Wait(Duration::zero()).has_value());
  EXPECT_EQ(node_->daemon().pid(), daemon);
  const auto after = node_->Status();
  EXPECT_EQ(after.at("gpus").at(static_cast<std::size_t>(gpu)).at("executor_restarts"), 1);
}

TEST_F(Node, ExecutorsKilledUnderLoadCostOnlyWhatIsInFlight) {
  constexpr int kKills = 4;
  ASSERT_NO_FATAL_FAILURE(
      Start(kTwoSmallGpus, {"a", "b", "c"}, {"a", "b", "c"}, 1, "", "durability: none"));
  std::atomic<bool> is_over = false;
  std::atomic<int> lost = 0;
  std::vector<std::thread> clients;
  for (const char* name : {"a", "b", "c"}) {
    clients.emplace_back([&, name] {
      while (!is_over) {
        const Reply reply = node_->PostOne(WorkPath(name), R"({"ms":[20]})");
        EXPECT_TRUE(reply.status == 200 || reply.status == 502) << reply.status << reply.body;
        if (reply.status == 502) ++lost;
      }
    });
  }
  for (int i = 0; i < kKills; ++i) {
    const auto gpu = static_cast<std::size_t>(WaitUntilRunning("a"));
    const auto executor = node_->Status().at("gpus").at(gpu);
    kill(executor.at("executor_pid").get<pid_t>(), SIGKILL);
    const auto has_restarted = [&] {
      return node_->Status().at("gpus").at(gpu).at("executor_restarts") !=
             executor.at("executor_restarts");
    };
    EXPECT_EQ(Await("the executor has a successor", has_restarted), absl::OkStatus());
  }
  is_over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_LE(lost, kKills);
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_EQ(node_->PostOne(AddPath(name), Value(0)).status, 200) << name;
  }
}

TEST_F(Node, AKilledDaemonTakesItsExecutorsWithIt) {
  ASSERT_NO_FATAL_FAILURE(Start(kTwoSmallGpus, {"a"}, {}));
  std::vector<pollfd> executors;
  for (const std::size_t gpu : {0u, 1u}) {
    pid_t executor = 0;
    const auto is_there = [&] { return (executor = node_->ExecutorOf(gpu)) != 0; };
    ASSERT_EQ(Await("the GPU has an executor", is_there), absl::OkStatus());
    executors.push_back({pidfd_open(executor, 0), POLLIN, 0});
  }
  node_->daemon().Signal(SIGKILL);
  for (pollfd& executor : executors) {
    EXPECT_EQ(poll(&executor, 1, 30'000), 1) << "it runs on";
    close(executor.fd);
  }
}

TEST_F(Node, AFaultOfOneFunctionLeavesTheOthersAlone) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a", "b"}, {"a", "b"}));
  EXPECT_EQ(node_->PostOne(AddPath("b"), Value(2)).body, Sum(2));
  const Reply fault = node_->PostOne("/function/a/fault", "{}");
  EXPECT_GE(fault.status, 500) << fault.body;
  const Reply other = node_->PostOne(AddPath("b"), Value(2));
  EXPECT_EQ(other.status, 200) << other.body;
  EXPECT_EQ(other.body, Sum(4));
  // An orchestrator reads the state here, and starts the broken function anew.
  const auto ready = [&](const std::string& name) {
    return ReadPage(node_->http_address(), "/v2/models/" + name + "/ready");
  };
  EXPECT_EQ(ready("a").rfind("HTTP/1.1 503", 0), 0u) << ready("a");
  EXPECT_EQ(ready("b").rfind("HTTP/1.1 200", 0), 0u) << ready("b");
}

TEST_F(Node, AKilledFunctionIsAbsentUntilItComesAgain) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a", "b"}, {"a", "b"}));
  EXPECT_EQ(node_->PostOne(AddPath("a"), Value(1)).body, Sum(1));
  node_->function("a").Signal(SIGKILL);
  node_->StopFunction("a");
  const Reply gone = node_->PostOne(AddPath("a"), Value(1));
  EXPECT_TRUE(gone.status == 502 || gone.status == 503) << gone.status << gone.body;
  EXPECT_EQ(node_->PostOne(AddPath("b"), Value(1)).status, 200);
  ASSERT_NO_FATAL_FAILURE(node_->StartFunction("a", StateServer()));
  // A new process has new memory.
  EXPECT_EQ(node_->PostOne(AddPath("a"), Value(5)).body, Sum(5));
}

TEST_F(Node, SigtermDrains) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a"}, {"a"}));
  Reply in_flight;
  std::thread request([&] { in_flight = node_->PostOne(WorkPath("a"), R"({"ms":[1500]})"); });
  WaitUntilRunning("a");
  node_->daemon().Signal(SIGTERM);
  request.join();
  EXPECT_EQ(in_flight.status, 200) << in_flight.body;
  EXPECT_EQ(node_->daemon().Wait(std::chrono::seconds(30)), 0);
}

TEST_F(Node, ARequestThatDoesNotEndIsWaitedForOnce) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a"}, {"a"}, 1, "drain_timeout: 100ms\n"));
  std::thread request([&] { node_->PostOne(WorkPath("a"), R"({"ms":[60000]})"); });
  WaitUntilRunning("a");
  node_->daemon().Signal(SIGTERM);
  EXPECT_EQ(node_->daemon().Wait(std::chrono::seconds(30)), 0);
  request.join();
  const std::string log = node_->daemon().Stderr();
  EXPECT_NE(log.find("they are broken off"), std::string::npos) << log;
  EXPECT_EQ(log.find("requests still run after the drain timeout"), std::string::npos) << log;
}

TEST_F(Node, AFunctionMayComeToCudaInItsFirstRequest) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a", "b"}, {"a"}));
  ASSERT_NO_FATAL_FAILURE(node_->StartFunction("b", LazyStateServer()));
  std::thread other([&] { EXPECT_EQ(node_->PostOne(AddPath("a"), Value(1)).body, Sum(1)); });
  const Reply first = node_->PostOne(AddPath("b"), Value(2));
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.body, Sum(2));
  other.join();
  EXPECT_EQ(node_->PostOne(AddPath("a"), Value(1)).body, Sum(2));
  EXPECT_EQ(node_->PostOne(AddPath("b"), Value(2)).body, Sum(4));
}

TEST_F(Node, UnknownFunctionsAreNotFound) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a"}, {}));
  EXPECT_EQ(node_->PostOne("/function/nobody/add", "{}").status, 404);
}

TEST_F(Node, AFunctionThatNobodyStartedIsUnavailable) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a"}, {}));
  EXPECT_EQ(node_->PostOne(AddPath("a"), Value(1)).status, 503);
}

TEST_F(Node, AWrongTokenIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a"}, {}));
  const std::string token = node_->folder().Write("wrong.token", "guess\n");
  const auto program =
      node_->RunProgram({"--token-file", token}, {std::string(PROGRAM_DIR) + "/vector_add"});
  EXPECT_EQ(program->Wait(std::chrono::seconds(30)), 1);
  EXPECT_NE(program->Stderr().find("token"), std::string::npos) << program->Stderr();
}

TEST_F(Node, AProgramWhoseDaemonDiesForGoodGetsAnErrorAndEnds) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a"}, {}));
  setenv("TORPOR_RECONNECT_TIMEOUT", "100ms", 1);
  const auto program =
      node_->RunProgram({"--function", "a"}, {std::string(DRIVEN_DIR) + "/until_error"});
  unsetenv("TORPOR_RECONNECT_TIMEOUT");
  ASSERT_NE(program->WaitForLine("working", std::chrono::seconds(60)), "") << program->Stderr();
  node_->daemon().Signal(SIGKILL);
  EXPECT_EQ(program->Wait(std::chrono::seconds(30)), 0) << program->Stderr();
  EXPECT_NE(program->Stdout().find("cudaErrorDevicesUnavailable, cudaErrorDevicesUnavailable"),
            std::string::npos)
      << program->Stdout();
  EXPECT_NE(program->Stderr().find("waiting 0.100 s"), std::string::npos) << program->Stderr();
  EXPECT_NE(program->Stderr().find("is lost"), std::string::npos) << program->Stderr();
}

// Programs that wait halfway while their GPU is lost or drained.
class MovingPrograms : public Node, public testing::WithParamInterface<const char*> {
 protected:
  void StartHalf(const std::string& function) {
    pipes_.push_back(node_->folder().path() + "/" + function + ".pipe");
    ASSERT_EQ(mkfifo(pipes_.back().c_str(), 0600), 0);
    programs_.push_back(node_->RunProgram(
        {"--function", function}, {std::string(DRIVEN_DIR) + "/" + GetParam(), pipes_.back()}));
    ASSERT_NE(programs_.back()->WaitForLine("waiting", std::chrono::seconds(60)), "")
        << programs_.back()->Stderr();
  }
  void FinishAll() {
    for (std::size_t i = 0; i < programs_.size(); ++i) {
      std::ofstream(pipes_[i]).close();
      EXPECT_EQ(programs_[i]->Wait(std::chrono::seconds(60)), 0)
          << programs_[i]->Stdout() << programs_[i]->Stderr();
    }
  }

 private:
  std::vector<std::unique_ptr<ChildProcess>> programs_;
  std::vector<std::string> pipes_;
};

// Both have variables and textures of their own on the GPU where they are, so that after the first
// one's GPU has died its own are elsewhere on the second one's.
TEST_P(MovingPrograms, FindWhatIsTheirsOnAnotherGpu) {
  ASSERT_NO_FATAL_FAILURE(Start(kTwoSmallGpus, {"a", "b"}, {}));
  for (const char* name : {"a", "b"}) ASSERT_NO_FATAL_FAILURE(StartHalf(name));
  for (const char* name : {"a", "b"}) WaitUntilIdle(name);
  const auto first_gpu = node_->Status().at("gpus").at(0);
  ASSERT_EQ(kill(first_gpu.at("executor_pid").get<pid_t>(), SIGKILL), 0);
  FinishAll();
}

TEST_P(MovingPrograms, FindWhatIsTheirsWhenOthersHaveHadTheGpu) {
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a", "b", "c"}, {}));
  ASSERT_NO_FATAL_FAILURE(StartHalf("a"));
  WaitUntilIdle("a");
  for (const char* name : {"b", "c"}) {
    ASSERT_NO_FATAL_FAILURE(node_->StartFunction(name, StateServer()));
    EXPECT_EQ(node_->PostOne(AddPath(name), Value(1)).body, Sum(1));
  }
  FinishAll();
}

INSTANTIATE_TEST_SUITE_P(E2e, MovingPrograms,
                         testing::Values("symbol_address", "moving_textures", "moved_graph"),
                         [](const auto& info) { return std::string(info.param); });

#ifdef TORPOR_HAS_CUDNN
INSTANTIATE_TEST_SUITE_P(Cudnn, MovingPrograms, testing::Values("moved_dnn"),
                         [](const auto& info) { return std::string(info.param); });
#endif

class ProgramsOfTwoGpus : public MovingPrograms {};

TEST_P(ProgramsOfTwoGpus, KeepTheirStateWhenAnotherHasHadAGpu) {
  if (IsTranslating()) GTEST_SKIP() << kPeers;
  ASSERT_NO_FATAL_FAILURE(Start(kTwoSmallGpus, {"pair", "b"}, {}, 2));
  ASSERT_NO_FATAL_FAILURE(StartHalf("pair"));
  WaitUntilIdle("pair");
  ASSERT_NO_FATAL_FAILURE(node_->StartFunction("b", StateServer()));
  EXPECT_EQ(node_->PostOne(AddPath("b"), Value(1)).body, Sum(1));
  FinishAll();
}

TEST_P(ProgramsOfTwoGpus, KeepWhatWasSavedWhenAGpuDies) {
  if (IsTranslating()) GTEST_SKIP() << kPeers;
  ASSERT_NO_FATAL_FAILURE(Start(kTwoSmallGpus, {"pair"}, {}, 2));
  ASSERT_NO_FATAL_FAILURE(StartHalf("pair"));
  WaitUntilIdle("pair");
  const auto first_gpu = node_->Status().at("gpus").at(0);
  ASSERT_EQ(kill(first_gpu.at("executor_pid").get<pid_t>(), SIGKILL), 0);
  FinishAll();
}

INSTANTIATE_TEST_SUITE_P(E2e, ProgramsOfTwoGpus, testing::Values("moving_peers"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(Node, ProgramsRunBesideTheFunctionsAndTakeTheGpuInTurns) {
  if (IsTranslating()) GTEST_SKIP() << kPointersInMemory;
  ASSERT_NO_FATAL_FAILURE(Start(kOneSmallGpu, {"a", "b"}, {"a"}));
  const auto program =
      node_->RunProgram({"--function", "b"}, {std::string(PROGRAM_DIR) + "/device_state"});
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(node_->PostOne(AddPath("a"), Value(1)).body, Sum(static_cast<std::uint64_t>(i)));
  }
  EXPECT_EQ(program->Wait(std::chrono::seconds(60)), 0) << program->Stdout() << program->Stderr();
}

}  // namespace
}  // namespace torpor::e2e
