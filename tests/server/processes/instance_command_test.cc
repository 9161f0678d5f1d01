#include "server/processes/instance_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "server/config/config_loader.h"

namespace torpor::server {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

Config Parsed(const std::string& functions) {
  const auto config =
      ParseConfig("version: v1\nrun_dir: /run/t\nfunctions:\n" + functions, "/etc/torpor/c.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(Config());
}

constexpr const char* kOne = R"(
  - name: digits
    memory_limit: 1GiB
    token_file: digits.token
    upstream: 127.0.0.1:9001
    command: [/srv/digits, --greeting, "good day, all"]
    env: [LEVEL=3, LD_LIBRARY_PATH=/opt/x]
)";

TEST(InstanceCommand, SaysWhatAContainerWouldBeGiven) {
  const auto commands = CommandsOf(Parsed(kOne), "/nowhere");
  ASSERT_TRUE(commands.ok()) << commands.status();
  ASSERT_THAT(*commands, ElementsAre(Key("digits")));
  const InstanceCommand& digits = commands->at("digits");
  EXPECT_THAT(digits.words, ElementsAre("/srv/digits", "--greeting", "good day, all"));
  EXPECT_EQ(digits.token_file, "/etc/torpor/digits.token");
  EXPECT_EQ(digits.stop_grace, std::chrono::seconds(10));
  EXPECT_FALSE(digits.user);
  EXPECT_THAT(digits.environment,
              ElementsAre(Pair("LD_LIBRARY_PATH", "/opt/x"), Pair("LEVEL", "3"), Key("PATH"),
                          Pair("PORT", "9001"), Pair("TORPOR_INSTANCE", "digits"),
                          Pair("TORPOR_SOCKET", "/run/t/functions/torpor.sock"),
                          Pair("TORPOR_TOKEN_FILE", "/etc/torpor/digits.token")));
}

TEST(InstanceCommand, TheClientLibrariesComeFirst) {
  const auto commands = CommandsOf(Parsed(kOne), "/usr");
  ASSERT_TRUE(commands.ok());
  EXPECT_THAT(commands->at("digits").environment, Contains(Pair("LD_LIBRARY_PATH", "/usr:/opt/x")));
}

TEST(InstanceCommand, InstancesShareTheFunctionsCommandOrHaveTheirOwn) {
  const auto commands = CommandsOf(Parsed(R"(
  - name: digits
    memory_limit: 1GiB
    command: /srv/digits --fast
    env: LEVEL=3
    user: nobody
    stop_grace: 2s
    instances:
      - {name: a, token_file: a, upstream: "127.0.0.1:1"}
      - {name: b, token_file: b, command: [/srv/other], env: [LEVEL=4, MORE=]}
  - {name: plain, memory_limit: 1GiB, token_file: p}
)"),
                                   "/nowhere");
  ASSERT_TRUE(commands.ok()) << commands.status();
  ASSERT_THAT(*commands, ElementsAre(Key("digits/a"), Key("digits/b")));
  const InstanceCommand& a = commands->at("digits/a");
  const InstanceCommand& b = commands->at("digits/b");
  EXPECT_THAT(a.words, ElementsAre("/srv/digits", "--fast"));
  EXPECT_THAT(b.words, ElementsAre("/srv/other"));
  EXPECT_THAT(a.environment, Contains(Pair("PORT", "1")));
  EXPECT_THAT(b.environment, Not(Contains(Key("PORT"))));
  EXPECT_THAT(b.environment, Contains(Pair("LEVEL", "4")));
  EXPECT_THAT(b.environment, Contains(Pair("MORE", "")));
  ASSERT_TRUE(a.user);
  EXPECT_EQ(a.user->name, "nobody");
  EXPECT_THAT(a.environment, Contains(Pair("USER", "nobody")));
  EXPECT_EQ(b.stop_grace, std::chrono::seconds(2));
}

TEST(InstanceCommand, WhatIsStartedInAnotherWayHasAnotherFingerprint) {
  InstanceCommand command = {.words = {"/a", "b"}, .environment = {{"X", "1"}}};
  const std::string first = command.Fingerprint();
  EXPECT_EQ(first.find(' '), std::string::npos);
  command.stop_grace = std::chrono::seconds(1);
  EXPECT_EQ(command.Fingerprint(), first);
  std::set<std::string> fingerprints = {first};
  command.words = {"/ab"};
  EXPECT_TRUE(fingerprints.insert(command.Fingerprint()).second);
  command.environment["X"] = "2";
  EXPECT_TRUE(fingerprints.insert(command.Fingerprint()).second);
  command.user = ProcessUser{.user = 5, .group = 6};
  EXPECT_TRUE(fingerprints.insert(command.Fingerprint()).second);
  command.token_file = "/t";
  EXPECT_TRUE(fingerprints.insert(command.Fingerprint()).second);
}

}  // namespace
}  // namespace torpor::server
