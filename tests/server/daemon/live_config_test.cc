#include "server/daemon/live_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace torpor::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = ConfigRequest::Kind;

constexpr const char* kDigits =
    "  - {name: digits, memory_limit: 1GiB, token_file: token, deadline: 80ms}\n";

class LiveConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "live-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    std::filesystem::create_directory(folder_ / "state");
    WriteFile(kDigits);
    Restart();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void WriteFile(const std::string& functions, const std::string& settings = "") {
    std::ofstream(folder_ / "config.yaml") << "version: v1\nstate_dir: state\n"
                                           << settings << "functions:\n"
                                           << functions;
  }
  absl::Status Load() {
    auto live = LiveConfig::Load({.load =
                                      [this] {
                                        ConfigSources sources;
                                        sources.file = folder_ / "config.yaml";
                                        return LoadConfig(sources);
                                      },
                                  .check = [](const Config&) { return absl::OkStatus(); },
                                  .apply =
                                      [this](const Config& config, bool is_trial) {
                                        ++(is_trial ? trials_ : applied_);
                                        if (answer_.ok() && !is_trial) running_ = config;
                                        return answer_;
                                      }});
    if (!live.ok()) return live.status();
    live_ = *std::move(live);
    running_ = live_->at_start();
    return absl::OkStatus();
  }
  void Restart() { ASSERT_TRUE(Load().ok()); }
  absl::StatusOr<LiveConfig::Lines> Set(const std::string& function,
                                        std::vector<SettingText> settings) {
    return live_->Change(
        {.kind = Kind::kSet, .function = function, .settings = std::move(settings)});
  }
  absl::StatusOr<LiveConfig::Lines> Apply(const std::string& functions, bool prune = false,
                                          bool is_trial = false) {
    return live_->Change({.kind = Kind::kApply,
                          .text = "version: v1\nfunctions:\n" + functions,
                          .file_name = "/f/apply.yaml",
                          .prune = prune,
                          .is_trial = is_trial});
  }
  Duration deadline() const { return running_.functions.at("digits").deadline; }

  std::filesystem::path folder_;
  std::unique_ptr<LiveConfig> live_;
  Config running_;
  absl::Status answer_;
  int applied_ = 0;
  int trials_ = 0;
};

TEST_F(LiveConfigTest, AChangeIsAppliedAndKept) {
  const auto lines = Set("digits", {{"deadline", "2s"}});
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, ElementsAre("function digits: deadline 2s, was 80ms"));
  EXPECT_EQ(deadline(), std::chrono::seconds(2));
  Restart();
  EXPECT_EQ(deadline(), std::chrono::seconds(2));
  EXPECT_THAT(live_->superseded(), IsEmpty());
}

TEST_F(LiveConfigTest, ASupersededChangeIsForgotten) {
  ASSERT_TRUE(Set("digits", {{"deadline", "2s"}}).ok());
  ASSERT_TRUE(Set("digits", {{"priority", "3"}}).ok());
  WriteFile("  - {name: digits, memory_limit: 1GiB, token_file: token, deadline: 1s}\n");
  Restart();
  EXPECT_THAT(live_->superseded(), ElementsAre(HasSubstr("function digits: ")));
  ASSERT_TRUE(live_->ForgetSuperseded().ok());
  WriteFile(kDigits);
  Restart();
  EXPECT_EQ(deadline(), std::chrono::milliseconds(80));
  EXPECT_THAT(live_->superseded(), IsEmpty());
}

TEST_F(LiveConfigTest, FunctionsComeAndGo) {
  ASSERT_TRUE(live_
                  ->Change({.kind = Kind::kAdd,
                            .function = "encoder",
                            .settings = {{"memory_limit", "2GiB"}, {"token_file", "/t"}}})
                  .ok());
  ASSERT_TRUE(live_->Change({.kind = Kind::kRemove, .function = "digits"}).ok());
  Restart();
  ASSERT_EQ(running_.functions.size(), 1u);
  EXPECT_EQ(running_.functions.at("encoder").token_file, "/t");
}

TEST_F(LiveConfigTest, AnInstanceGetsAnotherServer) {
  ASSERT_TRUE(Apply("  - name: speech\n    memory_limit: 1GiB\n"
                    "    instances: [{name: a, token_file: a}, {name: b, token_file: b}]\n")
                  .ok());
  const auto lines = Set("speech/b", {{"upstream", "10.0.0.7:9001"}});
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines,
              ElementsAre(HasSubstr("function speech: instance b (upstream 10.0.0.7:9001")));
  Restart();
  const auto& instances = running_.functions.at("speech").instances;
  EXPECT_EQ(instances.at("b").upstream, "10.0.0.7:9001");
  EXPECT_EQ(instances.at("a").upstream, "");
  for (const char* name : {"speech/c", "nobody/a", "digits/a"}) {
    EXPECT_THAT(std::string(Set(name, {{"upstream", "h:1"}}).status().message()),
                HasSubstr("there is no instance " + std::string(name)));
  }
  EXPECT_THAT(std::string(Set("speech/b", {{"deadline", "1s"}}).status().message()),
              HasSubstr("deadline: no such setting"));
}

TEST_F(LiveConfigTest, WhatTheDaemonRefusesChangesNothing) {
  answer_ = absl::InvalidArgumentError("two functions have the same token");
  EXPECT_EQ(Set("digits", {{"deadline", "2s"}}).status(), answer_);
  answer_ = absl::OkStatus();
  Restart();
  EXPECT_EQ(deadline(), std::chrono::milliseconds(80));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/changes.json.new"));
}

TEST_F(LiveConfigTest, WrongRequestsAreRefusedBeforeTheDaemonHearsOfThem) {
  const auto refused = [&](const absl::StatusOr<LiveConfig::Lines>& outcome, const char* why) {
    EXPECT_THAT(std::string(outcome.status().message()), HasSubstr(why));
  };
  refused(Set("digits", {{"dedline", "2s"}}), "dedline: no such setting; did you mean deadline?");
  refused(Set("digits", {{"deadline", "2"}}), "deadline: ");
  refused(Set("nobody", {{"deadline", "2s"}}), "there is no function nobody");
  refused(Set("digits", {{"gpus", "2"}}), "digits.gpus cannot be changed while torpord runs");
  refused(Set("digits", {{"name", "numbers"}}), "name: cannot be changed");
  refused(Set("digits", {{"token_file", ""}}), "function digits: token_file is missing");
  refused(live_->Change({.kind = Kind::kAdd, .function = "digits"}), "there is a function digits");
  refused(live_->Change({.kind = Kind::kAdd, .function = "A_b"}), "is not a name");
  refused(live_->Change({.kind = Kind::kRemove, .function = "nobody"}), "there is no function");
  refused(Apply("  - {name: a}\n"), "/f/apply.yaml:3: memory_limit is missing");
  refused(live_->Change({.kind = Kind::kApply,
                         .text = "version: v1\nlog_level: debug\n",
                         .file_name = "/f/apply.yaml"}),
          "/f/apply.yaml: log_level: a setting of the node");
  EXPECT_EQ(applied_ + trials_, 0);
}

TEST_F(LiveConfigTest, AFileIsAppliedAsAWhole) {
  const auto lines = Apply(
      "  - {name: digits, memory_limit: 1GiB, token_file: token}\n"
      "  - {name: encoder, memory_limit: 1GiB, token_file: token}\n");
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines,
              ElementsAre("function encoder: added", "function digits: deadline 1s, was 80ms",
                          HasSubstr("function digits: token_file /f/token, was ")));
  EXPECT_EQ(applied_, 1);
  EXPECT_EQ(running_.functions.at("encoder").token_file, "/f/token");
  ASSERT_TRUE(Apply("  - {name: vision, memory_limit: 1GiB, token_file: t}\n", true).ok());
  EXPECT_EQ(running_.functions.size(), 1u) << "the others were pruned";
}

TEST_F(LiveConfigTest, ATrialOnlySaysWhatWouldChange) {
  const auto lines = Apply("  - {name: a, memory_limit: 1GiB, token_file: t}\n", true, true);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, ElementsAre("function a: added", "function digits: removed"));
  EXPECT_EQ(applied_, 0);
  EXPECT_EQ(trials_, 1);
  answer_ = absl::NotFoundError("no token");
  EXPECT_EQ(Apply("  - {name: a, memory_limit: 1GiB, token_file: t}\n", false, true).status(),
            answer_);
  Restart();
  EXPECT_EQ(running_.functions.size(), 1u);
}

TEST_F(LiveConfigTest, AReloadAppliesTheFileAndNamesWhatNeedsARestart) {
  WriteFile("  - {name: digits, memory_limit: 1GiB, token_file: token, deadline: 90ms, gpus: 2}\n",
            "log_level: debug\n");
  const auto lines = live_->Reload();
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, ElementsAre("function digits: deadline 90ms, was 80ms",
                                  HasSubstr("log_level: not changed: "),
                                  HasSubstr("digits.gpus: not changed: ")));
  EXPECT_EQ(deadline(), std::chrono::milliseconds(90));
  EXPECT_EQ(running_.functions.at("digits").gpus, 1);
  ASSERT_TRUE(Set("digits", {{"priority", "1"}}).ok()) << "what is open stands in nobody's way";
  EXPECT_EQ(running_.functions.at("digits").gpus, 1);
  Restart();
  EXPECT_EQ(running_.functions.at("digits").gpus, 2);
  EXPECT_EQ(running_.functions.at("digits").priority, 1);
}

TEST_F(LiveConfigTest, AnInvalidFileChangesNothing) {
  WriteFile("  - {name: digits, memory_limit: lots}\n");
  EXPECT_THAT(std::string(live_->Reload().status().message()),
              HasSubstr("config.yaml:4: memory_limit: "));
  EXPECT_EQ(applied_, 0);
}

TEST_F(LiveConfigTest, AChangeStaysUntilTheFileChangesTheSameFunction) {
  ASSERT_TRUE(Set("digits", {{"deadline", "2s"}}).ok());
  WriteFile(std::string(kDigits) + "  - {name: encoder, memory_limit: 1GiB, token_file: t}\n");
  ASSERT_TRUE(live_->Reload().ok());
  EXPECT_EQ(deadline(), std::chrono::seconds(2));
  EXPECT_TRUE(running_.functions.contains("encoder"));
  WriteFile("  - {name: digits, memory_limit: 1GiB, token_file: token, deadline: 90ms}\n");
  const auto lines = live_->Reload();
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_EQ(deadline(), std::chrono::milliseconds(90));
  EXPECT_THAT(lines->back(), HasSubstr("function digits: as in the configuration file"));
  Restart();
  EXPECT_EQ(deadline(), std::chrono::milliseconds(90));
}

TEST_F(LiveConfigTest, ABrokenFileOfChangesIsNamed) {
  std::filesystem::create_directories(folder_ / "state");
  std::ofstream(folder_ / "state/changes.json") << "{";
  EXPECT_THAT(std::string(Load().message()), HasSubstr("state/changes.json: not JSON"));
}

TEST_F(LiveConfigTest, WhatCannotBeKeptIsNotApplied) {
  std::filesystem::remove(folder_ / "state");
  std::ofstream(folder_ / "state") << "a file in the folder's place";
  EXPECT_EQ(Set("digits", {{"deadline", "2s"}}).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(applied_, 0);
}

TEST_F(LiveConfigTest, WhatTorpordRunsComesFromTheFileAlone) {
  const auto refused = [](const absl::StatusOr<LiveConfig::Lines>& lines) {
    return absl::IsFailedPrecondition(lines.status()) &&
           std::string(lines.status().message()).find("configuration file alone") !=
               std::string::npos;
  };
  EXPECT_TRUE(refused(Set("digits", {{"command", "/bin/true"}})));
  EXPECT_TRUE(refused(Apply("  - {name: new, memory_limit: 1GiB, token_file: t, command: /a}\n")));
  const std::string with_command =
      "  - {name: digits, memory_limit: 1GiB, token_file: token, command: /bin/true, user: "
      "nobody}\n";
  WriteFile(with_command);
  const auto lines = live_->Reload();
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_THAT(*lines, testing::Contains(HasSubstr("command [\"/bin/true\"], was none")));
  EXPECT_TRUE(Set("digits", {{"deadline", "2s"}}).ok()) << "anything else may change";
  EXPECT_TRUE(refused(Set("digits", {{"command", "/bin/false"}})));
  EXPECT_TRUE(refused(Set("digits", {{"user", "root"}})));
  EXPECT_TRUE(refused(Set("digits", {{"env", "A=1"}})));
  Restart();
  EXPECT_THAT(running_.functions.at("digits").command, ElementsAre("/bin/true"));
}

}  // namespace
}  // namespace torpor::server
