// Functions that outlive torpord: it is killed under load, and nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/e2e/await.h"
#include "tests/e2e/driven/chain_numbers.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::e2e {
namespace {

constexpr const char* kTwoGpus = R"(version: v1
gpus:
  - memory: 96MiB
    count: 2
)";

// Long enough for a request to be killed in.
constexpr unsigned kLong = 2000;
constexpr unsigned kStateElements = 16u << 18;  // of a state_server

// A function whose answers depend on all requests so far, and the model of it.
class Chain {
 public:
  Chain(const EmulatedNode& node, std::string name) : node_(node), name_(std::move(name)) {}

  // A request; returns whether the answer is what the model says.
  bool Ask(unsigned value, unsigned steps) {
    for (unsigned step = 0; step < steps; ++step) {
      hash_ = hash_ * kChainFactor + value + value / 2 + step;
    }
    const Reply reply = node_.PostOne(
        "/function/" + name_ + "/chain",
        "{\"value\":[" + std::to_string(value) + "],\"steps\":[" + std::to_string(steps) + "]}");
    EXPECT_EQ(reply.status, 200) << name_ << ": " << reply.body;
    EXPECT_EQ(reply.body, "{\"sum\":" + std::to_string(hash_) + "}\n") << name_;
    return !testing::Test::HasFailure();
  }

 private:
  const EmulatedNode& node_;
  const std::string name_;
  unsigned hash_ = kChainBegin;
};

// Requests to a chain, one after another, until it goes. Some are long.
class Load {
 public:
  explicit Load(Chain& chain)
      : thread_([this, &chain] {
          for (unsigned value = 1; !is_over_; ++value) {
            if (!chain.Ask(value, value % 3 == 0 ? kLong : 20 * (value % 7))) return;
            ++answered_;
          }
        }) {}
  ~Load() {
    is_over_ = true;
    thread_.join();
  }
  unsigned answered() const { return answered_; }

 private:
  std::atomic<bool> is_over_ = false;
  std::atomic<unsigned> answered_ = 0;
  std::thread thread_;
};

// Functions chain and second, which are chains, and idle, which keeps a sum.
class Successors : public testing::Test {
 protected:
  explicit Successors(const std::string& settings = "")
      : node_(kTwoGpus, {"chain", "second", "idle"}, settings) {}
  void SetUp() override { Begin(); }
  void Begin() {
    node_.StartUnderInit();
    for (const char* name : {"chain", "second"}) {
      if (!HasFatalFailure()) StartChain(name);
    }
    if (HasFatalFailure()) return;
    node_.StartFunction("idle", {std::string(DRIVEN_DIR) + "/state_server"});
  }
  void TearDown() override {
    if (HasFailure()) std::fputs(node_.Logs().c_str(), stderr);
  }

  void StartChain(const std::string& name) {
    node_.StartFunction(name, {std::string(DRIVEN_DIR) + "/chain_server"});
  }
  void Add(unsigned value) {
    sum_ += value;
    const Reply reply =
        node_.PostOne("/function/idle/add", "{\"value\":[" + std::to_string(value) + "]}");
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.body,
              "{\"sum\":" + std::to_string(std::uint64_t{sum_} * kStateElements) + "}\n");
  }
  // No function's process has ended.
  void ExpectAllLive() {
    for (const char* name : {"chain", "second", "idle"}) {
      EXPECT_FALSE(node_.function(name).Wait(Duration::zero())) << name;
    }
  }
  std::vector<pid_t> Executors() const { return {node_.ExecutorOf(0), node_.ExecutorOf(1)}; }
  bool IsAnyLeased() const {
    const nlohmann::json gpus = node_.Status().at("gpus");
    return std::ranges::any_of(gpus, [](const nlohmann::json& gpu) {
      return !gpu.at("leased_to").get<std::string>().empty();
    });
  }
  double Outlived(const std::string& fate) const {
    return ValueOf(node_.Metrics(), "torpor_sessions_outlived_total", {"fate=\"" + fate + "\""});
  }
  void AwaitResumed(int sessions) const {
    EXPECT_EQ(Await("all go on", [&] { return Outlived("resumed") == sessions; }),
              absl::OkStatus());
  }

  EmulatedNode node_;
  Chain chain_{node_, "chain"};
  Chain second_{node_, "second"};
  unsigned sum_ = 0;
};

TEST_F(Successors, NothingIsLostOverTenKillsUnderLoad) {
  Add(3);
  const pid_t router = node_.RouterProcess();
  const std::vector<pid_t> executors = Executors();
  {
    const Load load(chain_);
    const Load more(second_);
    for (int kills = 0; kills < 10 && !HasFailure(); ++kills) {
      const unsigned enough = load.answered() + 3;
      const unsigned also = more.answered() + 3;
      const auto have_answered = [&] {
        return (load.answered() >= enough && more.answered() >= also) || HasFailure();
      };
      EXPECT_EQ(Await("requests are answered", have_answered), absl::OkStatus());
      node_.RestartTorpord();
    }
    std::printf("%u requests were answered over ten kills\n", load.answered() + more.answered());
  }
  ExpectAllLive();
  EXPECT_EQ(node_.RouterProcess(), router);
  EXPECT_EQ(Executors(), executors);
  if (HasFailure()) return;
  Add(4);
  chain_.Ask(1, 1);
  second_.Ask(1, 1);
}

TEST_F(Successors, FunctionsWithoutRequestsAreReadyAgainByThemselves) {
  chain_.Ask(1, 20);
  Add(3);
  ASSERT_NO_FATAL_FAILURE(node_.RestartTorpord());
  AwaitResumed(3);
  chain_.Ask(2, 20);
  Add(4);
  ExpectAllLive();
}

TEST_F(Successors, ARequestThatRunsIsAnsweredWithoutTorpord) {
  chain_.Ask(1, 20);
  const pid_t init = node_.daemon().pid();
  std::thread request([this] { chain_.Ask(2, 5 * kLong); });
  EXPECT_EQ(Await("the request runs", [this] { return IsAnyLeased(); }), absl::OkStatus());
  // So that no other torpord comes.
  EXPECT_EQ(kill(init, SIGSTOP), 0);
  EXPECT_EQ(kill(node_.TorpordProcess(), SIGKILL), 0);
  request.join();
  EXPECT_EQ(kill(init, SIGCONT), 0);
  if (HasFailure()) return;
  ASSERT_EQ(Await("the next torpord serves",
                  [this] { return node_.Status().value("state", "") == "ready"; }),
            absl::OkStatus());
  AwaitResumed(3);
  chain_.Ask(3, 20);
  ExpectAllLive();
}

TEST_F(Successors, AHandoverLosesNothing) {
  const std::vector<pid_t> executors = Executors();
  chain_.Ask(1, 20);
  Add(3);
  {
    const Load load(second_);
    node_.RestartTorpord(SIGUSR1);
    AwaitResumed(3);
  }
  chain_.Ask(3, 20);
  Add(4);
  ExpectAllLive();
  EXPECT_EQ(Executors(), executors);
}

class Upgrades : public Successors {
 protected:
  void SetUp() override {
    node_.InstallPrograms();
    Begin();
  }
};

TEST_F(Upgrades, NothingIsLostWithAnotherBuildUnderLoad) {
  Add(3);
  const std::vector<pid_t> executors = Executors();
  {
    const Load load(chain_);
    const Load more(second_);
    const auto have_answered = [&] { return (load.answered() > 3 && more.answered() > 3); };
    EXPECT_EQ(Await("requests are answered", have_answered), absl::OkStatus());
    node_.InstallPrograms();
    node_.RestartTorpord(SIGUSR1);
    AwaitResumed(3);
  }
  EXPECT_NE(Executors().front(), executors.front()) << "it is of another build";
  chain_.Ask(3, 20);
  second_.Ask(3, 20);
  Add(4);
  ExpectAllLive();
}

// Whether all threads of the process are stopped.
bool IsStopped(pid_t process) {
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word && word != "State:";) {
    }
    char state = 0;
    if (!(status >> state) || state != 'T') return false;
  }
  return true;
}

class ImpatientSuccessors : public Successors {
 protected:
  ImpatientSuccessors() : Successors("resume_patience: 2s\n") {}
};

TEST_F(ImpatientSuccessors, AFunctionThatDiesMeanwhileIsForgotten) {
  Add(3);
  // So that torpord does not see the function's end.
  const pid_t torpord = node_.TorpordProcess();
  ASSERT_EQ(kill(torpord, SIGSTOP), 0);
  ASSERT_EQ(Await("torpord stands still", [&] { return IsStopped(torpord); }), absl::OkStatus());
  node_.StopFunction("chain");
  ASSERT_NO_FATAL_FAILURE(node_.RestartTorpord());
  EXPECT_EQ(Await("one has expired", [&] { return Outlived("expired") == 1; }), absl::OkStatus());
  EXPECT_EQ(Outlived("resumed"), 2);
  Add(4);
  ASSERT_NO_FATAL_FAILURE(StartChain("chain"));
  chain_.Ask(1, 20);
}

}  // namespace
}  // namespace torpor::e2e
