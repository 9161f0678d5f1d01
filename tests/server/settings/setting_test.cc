#include "server/settings/setting.h"

#include <gtest/gtest.h>

#include "server/settings/value_kinds.h"

namespace torpor::server {
namespace {

struct Inner {
  int count = 3;
  bool operator==(const Inner&) const = default;
};
struct Outer {
  std::string folder = "/run";
  Inner inner;
  bool operator==(const Outer&) const = default;
};

const Settings<Inner>& InnerSettings() {
  static const Settings<Inner> table = {
      MakeSetting("count", CountKind{.min = 1, .max = 9}, &Inner::count, "A count")};
  return table;
}

Settings<Outer> OuterSettings() {
  Settings<Outer> table = {
      Required(MakeSetting("folder", PathKind{{"DIR"}}, &Outer::folder, "A folder"))};
  AddSettingsOf(table, &Outer::inner, InnerSettings());
  return table;
}

TEST(SettingTest, TheDefaultIsTheRecords) {
  const Settings<Outer> settings = OuterSettings();
  EXPECT_EQ(settings.at(0).DefaultText(), "") << "it is required";
  EXPECT_EQ(settings.at(1).DefaultText(), "3");
}

TEST(SettingTest, ANestedRecordsSettingReachesItsMember) {
  const Settings<Outer> settings = OuterSettings();
  const Setting<Outer>* const count = FindSetting(settings, "count");
  ASSERT_NE(count, nullptr);
  Outer outer;
  EXPECT_TRUE(count->set(outer, "7").ok());
  EXPECT_EQ(outer.inner.count, 7);
  EXPECT_EQ(count->text(outer), "7");
  EXPECT_EQ(count->value_name, "COUNT");
  EXPECT_EQ(FindSetting(settings, "number"), nullptr);
}

TEST(SettingTest, AWrongTextChangesNothing) {
  const Settings<Outer> settings = OuterSettings();
  Outer outer;
  EXPECT_EQ(FindSetting(settings, "count")->set(outer, "10").message(),
            "10 is out of range; use 1 to 9");
  EXPECT_EQ(outer, Outer());
}

TEST(SettingTest, OnlyPathsArePaths) {
  const Settings<Outer> settings = OuterSettings();
  EXPECT_TRUE(settings.at(0).is_path);
  EXPECT_FALSE(settings.at(1).is_path);
}

}  // namespace
}  // namespace torpor::server
