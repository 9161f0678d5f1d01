// One function with two instances, each a process of its own, on two emulated GPUs; the router is a
// process of its own, too.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::e2e {
namespace {

constexpr const char* kPath = "/function/a/work";

class Instances : public testing::Test {
 protected:
  void SetUp() override {
    node_ = std::make_unique<EmulatedNode>(kTwoSmallGpus, std::vector<std::string>{"a/x", "a/y"});
    node_->Start();
    for (const char* name : {"a/x", "a/y"}) {
      if (!HasFatalFailure()) StartInstance(name);
    }
    if (!HasFatalFailure()) node_->WaitUntilIdle();
  }
  void TearDown() override {
    if (HasFailure() && node_ != nullptr) std::fputs(node_->Logs().c_str(), stderr);
  }

  void StartInstance(const std::string& name) {
    node_->StartFunction(name, {std::string(DRIVEN_DIR) + "/state_server", "--megabytes", "16"});
  }
  // The instances that hold GPUs now.
  std::set<std::string> Running() const {
    std::set<std::string> running;
    const nlohmann::json status = node_->Status();
    for (const auto& gpu : status.at("gpus")) {
      running.insert(gpu.at("leased_to").get<std::string>());
    }
    running.erase("");
    return running;
  }
  // One of the instance's fields in `torporctl functions`.
  nlohmann::json FieldOf(const std::string& instance, const std::string& field) const {
    const auto functions =
        nlohmann::json::parse(node_->Torporctl({"functions", "--output", "json"})).at("functions");
    for (const auto& one : functions.at(0).at("instances")) {
      if (one.at("name") == instance) return one.at(field);
    }
    return {};
  }
  // Applies the node's functions without their last instance.
  void RemoveY() {
    std::ostringstream text;
    text << std::ifstream(node_->folder().path() + "/config.yaml").rdbuf();
    const std::size_t begin = text.str().find("functions:");
    const std::string only_x =
        "version: v1\n" + text.str().substr(begin, text.str().find("      - name: y") - begin);
    node_->Torporctl({"apply", "-f", node_->folder().Write("only_x.yaml", only_x)});
  }
  bool IsReady() const {
    return ReadPage(node_->http_address(), "/v2/models/a/ready").starts_with("HTTP/1.1 200");
  }

  std::unique_ptr<EmulatedNode> node_;
};

TEST_F(Instances, BothHoldAGpuAtOneTime) {
  const auto gpu_seconds = [&] {
    node_->WaitUntilIdle();
    return ValueOf(node_->Metrics(), "torpor_gpu_seconds_total", {"function=\"a\""});
  };
  const double before = gpu_seconds();
  const TimePoint begin = SteadyClock().Now();
  const std::vector<Reply> replies =
      node_->PostAll({{kPath, R"({"ms":[1500]})"}, {kPath, R"({"ms":[1500]})"}});
  const double passed = ToSeconds(SteadyClock().Now() - begin);
  // Leases one after the other are no longer than the time that has passed.
  EXPECT_GT(gpu_seconds() - before, 1.2 * passed);
  std::set<std::string> instances;
  std::set<std::string> gpus;
  for (const Reply& reply : replies) {
    ASSERT_EQ(reply.status, 200) << reply.body;
    instances.insert(reply.headers.at("x-torpor-instance"));
    gpus.insert(reply.headers.at("x-torpor-gpu"));
  }
  EXPECT_EQ(instances.size(), 2u);
  EXPECT_EQ(gpus.size(), 2u);
  const std::string page = node_->Metrics();
  for (const char* instance : {"instance=\"x\"", "instance=\"y\""}) {
    EXPECT_GE(ValueOf(page, "torpor_instance_requests_total", {"function=\"a\"", instance}), 1);
  }
  EXPECT_EQ(ValueOf(page, "torpor_requests_total", {"function=\"a\"", "outcome=\"ok\""}), 2);
}

TEST_F(Instances, OneKilledAndStartedAgainUnderLoadCostsNoRequest) {
  const pid_t router = node_->RouterProcess();
  ASSERT_GT(router, 0);
  EXPECT_TRUE(IsReady());
  std::atomic<bool> is_over = false;
  std::atomic<bool> is_dead = false;
  std::atomic<int> answered = 0;
  std::atomic<int> answered_by_x = 0;
  constexpr int kClients = 4;
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      while (!is_over) {
        const bool was_dead = is_dead;
        const Reply reply = node_->PostOne(kPath, R"({"ms":[20]})");
        EXPECT_EQ(reply.status, 200) << reply.body;
        if (reply.status != 200) continue;
        const std::string instance = reply.headers.at("x-torpor-instance");
        EXPECT_FALSE(was_dead && is_dead && instance == "x") << "a dead instance has answered";
        ++answered;
        if (instance == "x") ++answered_by_x;
      }
    });
  }
  const auto await_more = [&](const std::atomic<int>& count, int more) {
    const int enough = count + more;
    EXPECT_EQ(Await("requests are answered", [&] { return count >= enough; }), absl::OkStatus());
  };
  await_more(answered_by_x, 5);
  const auto x_runs = [&] { return Running().count("a/x") > 0; };
  EXPECT_EQ(Await("x runs", x_runs), absl::OkStatus());
  node_->function("a/x").Signal(SIGKILL);
  node_->function("a/x").Wait(std::chrono::seconds(30));
  is_dead = true;
  await_more(answered, 40);
  EXPECT_NE(FieldOf("x", "health"), "serving");
  EXPECT_TRUE(IsReady()) << "the other is";
  is_dead = false;
  node_->StopFunction("a/x");
  StartInstance("a/x");
  await_more(answered_by_x, 5);
  is_over = true;
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(FieldOf("x", "health"), "serving");
  const std::string page = node_->Metrics();
  EXPECT_EQ(ValueOf(page, "torpor_requests_total", {"outcome=\"ok\""}), answered);
  EXPECT_EQ(ValueOf(page, "torpor_requests_total", {}), answered)
      << "and none with another outcome";
  EXPECT_EQ(node_->RouterProcess(), router) << "the same process has counted them all";
}

TEST_F(Instances, TwoServeTwiceTheLoadOfOne) {
  constexpr int kClients = 4;
  constexpr int kRequests = 10;  // of each client
  const auto serve = [&] {
    const TimePoint begin = SteadyClock().Now();
    std::vector<std::thread> clients;
    clients.reserve(kClients);
    for (int i = 0; i < kClients; ++i) {
      clients.emplace_back([&] {
        for (int j = 0; j < kRequests; ++j) {
          EXPECT_EQ(node_->PostOne(kPath, R"({"ms":[50]})").status, 200);
        }
      });
    }
    for (std::thread& client : clients) client.join();
    return kClients * kRequests / ToSeconds(SteadyClock().Now() - begin);
  };
  serve();  // both images are on GPUs from then on
  const double by_two = serve();
  RemoveY();
  const double by_one = serve();
  std::printf("two instances: %.1f requests/s, one: %.1f, ratio %.2f\n", by_two, by_one,
              by_two / by_one);
  EXPECT_GT(by_two, 1.3 * by_one);
}

}  // namespace
}  // namespace torpor::e2e
