// What a function's kernels reach of functions in other isolation domains: nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/address_mode.h"
#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::e2e {
namespace {

using testing::HasSubstr;

constexpr const char* kOneGpu = "version: v1\ngpus:\n  - {memory: 96MiB}\n";
constexpr Duration kPatience = std::chrono::seconds(60);
constexpr int kRefused = 3;  // of thief.cu

// A node with the functions keeper and thief, and a keeper of secrets that runs.
class Isolation : public testing::Test {
 protected:
  // `times`: the keeper looks at its secrets so often, then ends.
  void Start(const std::string& isolation, int times = 1, const std::string& more = "") {
    node_ = std::make_unique<EmulatedNode>(kOneGpu, std::vector<std::string>{"keeper", "thief"},
                                           "isolation: " + isolation + "\n" + more, 1,
                                           "durability: none");
    ASSERT_NO_FATAL_FAILURE(node_->Start());
    pipe_ = node_->folder().path("pipe");
    ASSERT_EQ(mkfifo(pipe_.c_str(), 0600), 0);
    keeper_ = node_->RunProgram({"--function", "keeper"},
                                {Program("secret_keeper"), pipe_, std::to_string(times)});
    device_ = Said("device ");
    pinned_ = Said("pinned ");
  }
  void TearDown() override {
    if (HasFailure() && node_ != nullptr) std::fputs(node_->Logs().c_str(), stderr);
  }

  static std::string Program(const std::string& name) {
    return std::string(DRIVEN_DIR) + "/" + name;
  }
  std::string Said(const std::string& what) const {
    const std::string line = keeper_->WaitForLine(what, kPatience);
    EXPECT_THAT(line, HasSubstr(what)) << keeper_->Stdout() << keeper_->Stderr();
    return line.substr(std::min(what.size(), line.size()));
  }
  // Runs the thief; returns its exit status.
  int Attack(const std::string& how, const std::string& where) {
    thief_ = node_->RunProgram({"--function", "thief"}, {Program("thief"), how, where});
    return thief_->Wait(kPatience).value_or(-1);
  }
  // Lets the keeper look at its secrets, for the first time or a later one.
  void ExpectIntact(int time = 1) {
    std::ofstream knock(pipe_);  // writes nothing: the keeper may have closed its end already
    knock.close();
    const std::string intact = "intact " + std::to_string(time);
    EXPECT_EQ(keeper_->WaitForLine(intact, kPatience), intact) << keeper_->Stdout();
  }

  std::unique_ptr<EmulatedNode> node_;
  std::string pipe_;
  std::unique_ptr<ChildProcess> keeper_;
  std::unique_ptr<ChildProcess> thief_;
  std::string device_;
  std::string pinned_;
};

// The attacks are real: functions that trust each other reach each other's memory.
TEST_F(Isolation, SharedExecutorsShareMemory) {
  ASSERT_NO_FATAL_FAILURE(Start("shared"));
  EXPECT_EQ(Attack("read", pinned_), 0);
  EXPECT_THAT(thief_->Stdout(), HasSubstr("stolen"));
}

TEST_F(Isolation, AnotherDomainsMemoryIsNotThere) {
  if (IsTranslating()) GTEST_SKIP() << "domains have the one executor in turn";
  ASSERT_NO_FATAL_FAILURE(Start("function"));
  for (const std::string& address : {device_, pinned_}) {
    for (const char* const how : {"read", "write"}) {
      EXPECT_EQ(Attack(how, address), kRefused) << how << " " << thief_->Stdout();
    }
  }
  ExpectIntact();
}

// The keeper's chunks are the thief's next.
TEST_F(Isolation, MemoryThatChangesHandsIsClear) {
  ASSERT_NO_FATAL_FAILURE(Start("function"));
  node_->WaitUntilIdle();
  node_->Torporctl({"evict", "keeper"});
  EXPECT_EQ(Attack("scan", "64"), 0) << thief_->Stdout();
  EXPECT_THAT(thief_->Stdout(), HasSubstr("found 0"));
  ExpectIntact();
}

TEST_F(Isolation, FaultsAreTheirOwnDomainsOnly) {
  if (IsTranslating()) GTEST_SKIP() << "domains have the one executor in turn";
  ASSERT_NO_FATAL_FAILURE(Start("function"));
  node_->WaitUntilIdle();
  const auto executor_of_keeper = [this] {
    const nlohmann::json status = node_->Status();
    for (const nlohmann::json& executor : status.at("gpus").at(0).at("executors")) {
      if (executor.at("domain") == "function/keeper") return executor.at("pid").get<pid_t>();
    }
    return 0;
  };
  const pid_t executor = executor_of_keeper();
  EXPECT_GT(executor, 0);
  for (int i = 0; i < 5; ++i) EXPECT_NE(Attack("read", "16"), 0);
  EXPECT_EQ(executor_of_keeper(), executor);
  ExpectIntact();
}

std::string StatusOf(pid_t process, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return line.substr(line.find_last_of(" \t") + 1);
  }
  return "";
}

TEST_F(Isolation, ExecutorsAndTheMemorysOwnerAreConfined) {
  ASSERT_NO_FATAL_FAILURE(Start("function"));
  const nlohmann::json gpu = node_->Status().at("gpus").at(0);
  std::vector<pid_t> processes = {gpu.at("executor_pid").get<pid_t>()};
  if (!IsTranslating()) processes.push_back(gpu.at("pool_owner_pid").get<pid_t>());
  for (const pid_t process : processes) {
    EXPECT_EQ(StatusOf(process, "CapEff"), "0000000000000000");
    EXPECT_EQ(StatusOf(process, "NoNewPrivs"), "1");
    EXPECT_EQ(StatusOf(process, "Seccomp"), "2");
  }
  // A kernel without Landlock says so, and nothing else is missing.
  for (const nlohmann::json& what : gpu.at("executors").at(0).at("not_confined")) {
    EXPECT_THAT(what.get<std::string>(), testing::StartsWith("files: "));
  }
}

// Domains beyond the executors take turns, by processes that end.
TEST_F(Isolation, DomainsHaveAnExecutorInTurn) {
  ASSERT_NO_FATAL_FAILURE(Start("function", 2, "executors_per_gpu: 1\n"));
  EXPECT_EQ(Attack("scan", "8"), 0) << thief_->Stdout();
  ExpectIntact(1);
  EXPECT_EQ(Attack("read", device_), kRefused) << thief_->Stdout();
  ExpectIntact(2);
}

// Functions of a tenant break their domain's context, one after the other, while a neighbour
// serves requests. Each fault is the first of its function, so that none has to wait for a GPU.
TEST(IsolatedFaults, CostNeighboursNothing) {
  if (IsTranslating()) GTEST_SKIP() << "domains have the one executor in turn";
  constexpr int kFaults = 8;
  std::vector<std::string> functions = {"neighbour"};
  for (int i = 0; i < kFaults; ++i) functions.push_back("thief-" + std::to_string(i));
  EmulatedNode node(kOneGpu, functions, "isolation: tenant\nspare_executor: true\n", 1,
                    "durability: none\n    tenant: {initial}");
  ASSERT_NO_FATAL_FAILURE(node.Start());
  ASSERT_NO_FATAL_FAILURE(node.StartFunction(
      "neighbour", {std::string(DRIVEN_DIR) + "/state_server", "--megabytes", "1"}));
  std::atomic<bool> is_over = false;
  Duration longest{};
  std::thread asks([&] {
    for (std::uint64_t round = 1; !is_over; ++round) {
      const TimePoint begin = SteadyClock().Now();
      const Reply reply = node.PostOne("/function/neighbour/add", R"({"value":[1]})");
      EXPECT_EQ(reply.status, 200) << reply.body;
      EXPECT_EQ(reply.body, "{\"sum\":" + std::to_string(round << 18) + "}\n");
      longest = std::max(longest, SteadyClock().Now() - begin);
    }
  });
  for (int i = 0; i < kFaults; ++i) {
    const auto thief =
        node.RunProgram({"--function", functions.at(static_cast<std::size_t>(i) + 1)},
                        {std::string(DRIVEN_DIR) + "/thief", "read", "16"});
    EXPECT_EQ(thief->Wait(kPatience), kRefused) << thief->Stdout() << thief->Stderr();
  }
  is_over = true;
  asks.join();
  EXPECT_LT(longest, std::chrono::seconds(2)) << "the GPU is back";
  // After the last fault the next executor may not have been started yet.
  EXPECT_GE(node.Status().at("gpus").at(0).at("executor_restarts"), kFaults - 1);
  if (testing::Test::HasFailure()) std::fputs(node.Logs().c_str(), stderr);
}

}  // namespace
}  // namespace torpor::e2e
