#include "server/config/config_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/config/config_loader.h"

namespace torpor::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Field = ConfigChange::Field;
using Item = ConfigChange::Item;

constexpr const char* kBefore = R"(version: v1
http_address: 127.0.0.1:8000
tenants:
  - {name: mail}
  - {name: search, weight: 2}
functions:
  - {name: digits, memory_limit: 1GiB, token_file: d, tenant: mail, deadline: 80ms}
  - {name: encoder, memory_limit: 1GiB, token_file: e, tenant: mail}
  - name: speech
    memory_limit: 1GiB
    tenant: mail
    instances: [{name: a, token_file: a}, {name: b, token_file: b}]
)";

class ConfigChangeTest : public testing::Test {
 protected:
  static Config Parse(const std::string& yaml) {
    const auto config = ParseConfig(yaml, "/etc/torpor/config.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return config.value_or(Config());
  }
  ConfigChange Change() { return Compare(before_, after_); }

  const Config before_ = Parse(kBefore);
  Config after_ = before_;
};

TEST_F(ConfigChangeTest, WhatIsTheSameIsNoChange) {
  EXPECT_TRUE(Change().is_empty());
  EXPECT_THAT(Change().fixed, IsEmpty());
  EXPECT_THAT(Describe(Change()), IsEmpty());
}

TEST_F(ConfigChangeTest, NamesWhatComesAndGoesAndChanges) {
  after_.functions.erase("encoder");
  after_.functions["vision"] = before_.functions.at("encoder");
  after_.functions["digits"].deadline = std::chrono::milliseconds(100);
  after_.functions["digits"].priority = 2;
  after_.tenants.erase("search");
  after_.tenants["mail"].weight = 3;
  const ConfigChange change = Change();
  EXPECT_THAT(change.functions.added, ElementsAre("vision"));
  EXPECT_THAT(change.functions.removed, ElementsAre("encoder"));
  EXPECT_THAT(
      change.functions.changed,
      ElementsAre(Item{"digits", {Field{"deadline", "80ms", "100ms"}, {"priority", "0", "2"}}}));
  EXPECT_THAT(change.tenants.removed, ElementsAre("search"));
  EXPECT_THAT(change.tenants.changed, ElementsAre(Item{"mail", {Field{"weight", "1", "3"}}}));
  EXPECT_THAT(Describe(change),
              ElementsAre("tenant search: removed", "tenant mail: weight 3, was 1",
                          "function vision: added", "function encoder: removed",
                          "function digits: deadline 100ms, was 80ms",
                          "function digits: priority 2, was 0"));
}

TEST_F(ConfigChangeTest, InstancesAreComparedByName) {
  FunctionConfig& speech = after_.functions["speech"];
  speech.instances.erase("a");
  speech.instances["b"].upstream = "127.0.0.1:9001";
  EXPECT_THAT(
      Describe(Change()),
      ElementsAre("function speech: instance a none, was (upstream none, token_file /etc/torpor/a)",
                  "function speech: instance b (upstream 127.0.0.1:9001, token_file "
                  "/etc/torpor/b), was (upstream none, token_file /etc/torpor/b)"));
}

TEST_F(ConfigChangeTest, WhatOnlyARestartAppliesIsSetApart) {
  after_.router.http_address = "127.0.0.1:9000";
  after_.functions["digits"].gpus = 2;
  after_.functions["digits"].priority = 1;
  after_.functions["encoder"].max_in_flight = 4;
  const ConfigChange change = Change();
  EXPECT_THAT(change.functions.changed, ElementsAre(Item{"digits", {Field{"priority", "0", "1"}}}));
  std::vector<std::string> keys;
  for (const ConfigChange::Fixed& fixed : change.fixed) keys.push_back(fixed.key);
  EXPECT_THAT(keys, ElementsAre("http_address", "digits.gpus", "encoder.max_in_flight"));
  const Config applicable = Applicable(before_, after_);
  EXPECT_EQ(applicable.router.http_address, "127.0.0.1:8000");
  EXPECT_EQ(applicable.functions.at("digits").gpus, 1);
  EXPECT_EQ(applicable.functions.at("digits").priority, 1);
  EXPECT_EQ(applicable.functions.at("encoder").max_in_flight, 1);
}

TEST_F(ConfigChangeTest, ANewFunctionHasNothingFixed) {
  after_.functions["vision"] = before_.functions.at("encoder");
  after_.functions["vision"].gpus = 2;
  EXPECT_THAT(Change().fixed, IsEmpty());
  EXPECT_EQ(Applicable(before_, after_).functions.at("vision").gpus, 2);
}

}  // namespace
}  // namespace torpor::server
