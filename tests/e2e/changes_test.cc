// Functions that come, change and go under load, and what is left of that after a restart.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::e2e {
namespace {

class Changes : public testing::Test {
 protected:
  void SetUp() override {
    node_ = std::make_unique<EmulatedNode>(kTwoSmallGpus,
                                           std::vector<std::string>{"a", "b", "c", "d", "e", "f"});
    node_->Start();
    for (const char* name : {"a", "b", "c"}) {
      if (!HasFatalFailure()) StartServer(name);
    }
  }
  void TearDown() override {
    if (HasFailure() && node_ != nullptr) std::fputs(node_->Logs().c_str(), stderr);
  }

  void StartServer(const std::string& name) {
    node_->StartFunction(name, {std::string(DRIVEN_DIR) + "/state_server", "--megabytes", "16"});
  }
  nlohmann::json Report() const {
    return nlohmann::json::parse(node_->Torporctl({"functions", "--output", "json"}))
        .at("functions");
  }
  std::vector<std::string> Functions() const {
    std::vector<std::string> names;
    for (const auto& function : Report()) names.push_back(function.at("name"));
    return names;
  }
  // How often the function's memory came to a GPU, and how many sessions it has.
  std::pair<int, int> SwapsAndSessionsOf(const std::string& name) const {
    for (const auto& function : Report()) {
      if (function.at("name") == name) return {function.at("swaps_in"), function.at("sessions")};
    }
    return {};
  }
  // The exit status of a CUDA program under the token.
  std::optional<int> RunUnder(const std::string& token) const {
    const std::string file = node_->folder().Write("program.token", token);
    const std::string socket = node_->folder().path() + "/functions/torpor.sock";
    return node_
        ->RunProgram({"--token-file", file, "--socket", socket},
                     {std::string(PROGRAM_DIR) + "/vector_add"})
        ->Wait(std::chrono::seconds(60));
  }
  bool Has(const std::string& name) const {
    const std::vector<std::string> names = Functions();
    return std::find(names.begin(), names.end(), name) != names.end();
  }
  double DeadlineOf(const std::string& name) const {
    return nlohmann::json::parse(node_->Torporctl({"function", "show", name, "--output", "json"}))
        .at("deadline_ms");
  }
  std::string ConfigFile() const {
    std::ostringstream text;
    text << std::ifstream(node_->folder().path() + "/config.yaml").rdbuf();
    return text.str();
  }
  // Sends SIGHUP and waits until the log says `outcome` once more.
  void Reload(const std::string& outcome) {
    const auto count = [&] {
      int found = 0;
      const std::string log = node_->daemon().Stderr();
      for (std::size_t at = log.find(outcome); at != std::string::npos;
           at = log.find(outcome, at + 1)) {
        ++found;
      }
      return found;
    };
    const int before = count();
    node_->daemon().Signal(SIGHUP);
    EXPECT_EQ(Await(outcome, [&] { return count() > before; }), absl::OkStatus());
  }

  std::unique_ptr<EmulatedNode> node_;
};

TEST_F(Changes, UnderLoadTheyCostNoRequest) {
  constexpr const char* kApplied = "the configuration is applied";
  std::atomic<bool> is_over = false;
  std::atomic<int> answered = 0;
  std::vector<std::thread> clients;
  for (const char* name : {"a", "b"}) {
    clients.emplace_back([&, path = "/function/" + std::string(name) + "/work"] {
      while (!is_over) {
        const Reply reply = node_->PostOne(path, R"({"ms":[10]})");
        EXPECT_EQ(reply.status, 200) << reply.body;
        ++answered;
      }
    });
  }
  const auto await_more = [&] {
    const int enough = answered + 20;
    EXPECT_EQ(Await("requests are answered", [&] { return answered >= enough; }), absl::OkStatus());
  };
  await_more();
  const auto a_before = SwapsAndSessionsOf("a");
  const auto b_before = SwapsAndSessionsOf("b");
  std::string added = "version: v1\nfunctions:\n";
  for (int i = 0; i < 10; ++i) {
    const std::string name = "new-" + std::to_string(i);
    node_->folder().Write(name + ".token", "secret-of-the-function-" + name);
    added += fmt::format("  - {{name: {0}, memory_limit: 64MiB, token_file: {0}.token}}\n", name);
  }
  const std::string file = node_->folder().Write("added.yaml", added);
  EXPECT_NE(node_->Torporctl({"apply", "-f", file, "--dry-run"}).find("function new-0: added"),
            std::string::npos);
  EXPECT_FALSE(Has("new-0"));
  node_->Torporctl({"apply", "-f", file});
  for (const char* name : {"c", "d", "e", "f"}) node_->Torporctl({"function", "remove", name});
  node_->Torporctl({"function", "remove", "new-0"});
  EXPECT_EQ(Functions().size(), 11u);
  EXPECT_EQ(node_->PostOne("/function/c/work", "{}").status, 404);

  // Tokens of all that is left in the file, the ones with sessions included.
  for (int i = 0; i < 2; ++i) {
    node_->folder().Write(std::to_string(i) + ".token",
                          "rotated-secret-of-the-function-" + std::to_string(i));
  }
  for (int i = 1; i < 4; ++i) {
    node_->folder().Write("new-" + std::to_string(i) + ".token",
                          "rotated-secret-of-the-function-new-" + std::to_string(i));
  }
  Reload(kApplied);

  const std::string valid = ConfigFile();
  std::string changed = valid;
  changed.replace(changed.find("deadline: 1s"), 12, "deadline: 3s");  // of a, the first
  node_->folder().Write("config.yaml", changed);
  Reload(kApplied);
  EXPECT_EQ(DeadlineOf("a"), 3000);
  node_->folder().Write("config.yaml", valid + "  - {name: x, memory_limit: lots}\n");
  Reload("the configuration is not applied");
  EXPECT_EQ(DeadlineOf("a"), 3000);
  EXPECT_FALSE(Has("x"));

  await_more();
  EXPECT_EQ(SwapsAndSessionsOf("a"), a_before);
  EXPECT_EQ(SwapsAndSessionsOf("b"), b_before);
  is_over = true;
  for (std::thread& client : clients) client.join();
  const std::string page = node_->Metrics();
  EXPECT_EQ(ValueOf(page, "torpor_requests_total", {"outcome=\"ok\""}), answered);
  EXPECT_EQ(ValueOf(page, "torpor_executors_lost_total", {}), 0);
  EXPECT_EQ(page.find("function=\"c\""), std::string::npos);
  EXPECT_EQ(RunUnder("rotated-secret-of-the-function-new-1"), 0);
  EXPECT_EQ(RunUnder("secret-of-the-function-new-1"), 1);
}

TEST_F(Changes, AFullDiskIsToldAndTheNodeGoesOn) {
  const std::string state = node_->folder().path() + "/state";
  std::filesystem::create_symlink("/dev/full", state + "/changes.json.new");
  const std::vector<std::string> set = {"function", "set", "a", "--deadline", "2s"};
  const std::string why = node_->RefusedTorporctl(set);
  EXPECT_NE(why.find("not applied: cannot write "), std::string::npos) << why;
  EXPECT_NE(why.find("No space left on device"), std::string::npos) << why;
  EXPECT_NE(node_->Logs().find("a change of the configuration is not kept"), std::string::npos);
  EXPECT_EQ(DeadlineOf("a"), 1000);
  node_->Torporctl(set);  // there is room again
  EXPECT_EQ(DeadlineOf("a"), 2000);
}

TEST_F(Changes, AreThereAfterARestart) {
  node_->Torporctl({"function", "set", "a", "--deadline", "2s"});
  node_->Torporctl({"function", "remove", "f"});
  node_->daemon().Signal(SIGTERM);
  EXPECT_EQ(node_->daemon().Wait(std::chrono::seconds(30)), 0);
  for (const char* name : {"a", "b", "c"}) node_->StopFunction(name);
  node_->Start();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(DeadlineOf("a"), 2000);
  EXPECT_FALSE(Has("f"));
  // The file takes the function up again.
  std::string changed = ConfigFile();
  changed.replace(changed.find("deadline: 1s"), 12, "deadline: 4s");
  node_->folder().Write("config.yaml", changed);
  Reload("the configuration is applied");
  EXPECT_EQ(DeadlineOf("a"), 4000);
  EXPECT_FALSE(Has("f"));
}

}  // namespace
}  // namespace torpor::e2e
