#include "server/config/config_overlay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/config/config_loader.h"

namespace torpor::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ConfigOverlayTest : public testing::Test {
 protected:
  static Config Parse(const std::string& yaml) {
    const auto config = ParseConfig("version: v1\n" + yaml, "/etc/torpor/config.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    return config.value_or(Config());
  }
  // After it was written and read again.
  static ConfigOverlay Kept(const ConfigOverlay& overlay) {
    const auto read = ParseOverlay(FormatOverlay(overlay), "changes.json");
    EXPECT_TRUE(read.ok()) << read.status();
    return read.value_or(ConfigOverlay());
  }
  static OverlaidConfig Lay(const Config& file, const ConfigOverlay& overlay) {
    const auto overlaid = WithOverlay(file, Kept(overlay));
    EXPECT_TRUE(overlaid.ok()) << overlaid.status();
    return overlaid.value_or(OverlaidConfig());
  }

  const Config file_ = Parse(R"(functions:
  - {name: digits, memory_limit: 1GiB, token_file: d, deadline: 80ms}
  - {name: encoder, memory_limit: 1GiB, token_file: e}
  - name: speech
    memory_limit: 0
    instances: [{name: a, token_file: a}, {name: b, token_file: b, upstream: 'h:1'}]
)");
};

TEST_F(ConfigOverlayTest, WhatWasChangedIsThereAgain) {
  Config changed = file_;
  changed.functions.erase("encoder");
  changed.functions["digits"].deadline = std::chrono::microseconds(1500);
  changed.functions["digits"].second_tries = false;
  changed.functions["speech"].instances["a"].upstream = "127.0.0.1:9";
  changed.functions["vision"] = file_.functions.at("speech");
  changed.functions["vision"].name = "vision";
  changed.tenants["mail"] = {"mail", 2.5};
  const OverlaidConfig overlaid = Lay(file_, OverlayOf(file_, changed));
  EXPECT_EQ(overlaid.config, changed);
  EXPECT_THAT(overlaid.superseded, IsEmpty());
}

TEST_F(ConfigOverlayTest, WithoutAChangeThereIsNothingToKeep) {
  EXPECT_TRUE(OverlayOf(file_, file_).is_empty());
}

TEST_F(ConfigOverlayTest, TheFileWinsOnceItSaysSomethingElseOfAFunction) {
  Config changed = file_;
  changed.functions.erase("encoder");
  changed.functions["digits"].deadline = std::chrono::seconds(5);
  Config new_file = file_;
  new_file.functions["digits"].priority = 3;
  new_file.functions["speech"].priority = 3;
  const OverlaidConfig overlaid = Lay(new_file, OverlayOf(file_, changed));
  EXPECT_THAT(overlaid.superseded, ElementsAre("function digits"));
  EXPECT_EQ(overlaid.config.functions.at("digits"), new_file.functions.at("digits"));
  EXPECT_FALSE(overlaid.config.functions.contains("encoder")) << "the file says the same of it";
}

TEST_F(ConfigOverlayTest, AFunctionThatTheFileHasNowTooIsTheFiles) {
  Config changed = file_;
  changed.functions["vision"] = file_.functions.at("digits");
  Config new_file = file_;
  new_file.functions["vision"] = file_.functions.at("encoder");
  const OverlaidConfig overlaid = Lay(new_file, OverlayOf(file_, changed));
  EXPECT_THAT(overlaid.superseded, ElementsAre("function vision"));
  EXPECT_EQ(overlaid.config, new_file);
}

TEST_F(ConfigOverlayTest, ABrokenFileIsNamedWithTheRemedy) {
  for (const char* text :
       {"", "[]", "{", R"({"format": 2, "functions": {}, "tenants": {}})",
        R"({"format": 1, "functions": [], "tenants": {}})",
        R"({"format": 1, "functions": {"a": {"changed": 1, "of_file": null}}, "tenants": {}})",
        R"({"format": 1, "functions": {"a": {"changed": {"instances": 1}, "of_file": null}},
            "tenants": {}})"}) {
    const absl::Status status = ParseOverlay(text, "/state/changes.json").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/state/changes.json: ")) << text;
  }
  const auto unknown = ParseOverlay(
      R"({"format": 1, "functions": {"a": {"changed": {"colour": "red"}, "of_file": null}},
          "tenants": {}})",
      "changes.json");
  ASSERT_TRUE(unknown.ok());
  EXPECT_EQ(WithOverlay(file_, *unknown).status().message(), "function a: colour: no such setting");
}

}  // namespace
}  // namespace torpor::server
