#include "server/config/setting_values.h"

#include <gtest/gtest.h>

#include <limits>

namespace torpor::server {
namespace {

TEST(SettingValuesTest, SizesKnowBothKindsOfUnits) {
  EXPECT_EQ(ParseBytes("512MiB").value(), 512 * kMiB);
  EXPECT_EQ(ParseBytes("24 GiB").value(), 24 * kGiB);
  EXPECT_EQ(ParseBytes("1.5KiB").value(), 1536u);
  EXPECT_EQ(ParseBytes("80GB").value(), 80'000'000'000u);
  EXPECT_EQ(ParseBytes("4096").value(), 4096u);
  EXPECT_EQ(ParseBytes("0").value(), 0u);
}

TEST(SettingValuesTest, WhatIsNoSizeIsRefused) {
  for (const char* text :
       {"", "MiB", "1 XiB", "-1", "1e3", "nan", "inf", "1MiBs", " 1", "99999999999999999999TiB"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

TEST(SettingValuesTest, DurationsNeedAUnit) {
  EXPECT_EQ(ParseDuration("80ms").value(), std::chrono::milliseconds(80));
  EXPECT_EQ(ParseDuration("1.5s").value(), std::chrono::milliseconds(1500));
  EXPECT_EQ(ParseDuration("250us").value(), std::chrono::microseconds(250));
  EXPECT_EQ(ParseDuration("2h").value(), std::chrono::hours(2));
  for (const char* text : {"", "80", "ms", "-1s", "80 minutes", "99999999999999h"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(SettingValuesTest, APercentileIsBetweenNothingAndAll) {
  EXPECT_EQ(ParsePercentile("0.98").value(), 0.98);
  EXPECT_EQ(ParsePercentile("0.9999").value(), 0.9999);
  EXPECT_EQ(ParsePercentile("0.99991").status().message(),
            "\"0.99991\" is above 0.9999: one late request would weigh more than ten thousand in "
            "time; write at most 0.9999");
  for (const char* text : {"", "0", "1", "1.0", "-0.5", "98%", "nan", "0.5x", "1e-3"}) {
    EXPECT_FALSE(ParsePercentile(text).ok()) << text;
  }
}

TEST(SettingValuesTest, AWeightIsPositive) {
  EXPECT_EQ(ParseWeight("3").value(), 3);
  EXPECT_EQ(ParseWeight("0.001").value(), 0.001);
  for (const char* text : {"", "0", "-1", "1001", "nan", "heavy", "2x"}) {
    EXPECT_FALSE(ParseWeight(text).ok()) << text;
  }
}

TEST(SettingValuesTest, APriorityMayBeNegative) {
  EXPECT_EQ(ParsePriority("7").value(), 7);
  EXPECT_EQ(ParsePriority("-1000").value(), -1000);
  for (const char* text : {"", "1001", "-1001", "1.5", "high", "99999999999"}) {
    EXPECT_FALSE(ParsePriority(text).ok()) << text;
  }
}

TEST(SettingValuesTest, WholeNumbersAreDecimalOrHexadecimal) {
  EXPECT_EQ(ParseUnsigned("42").value(), 42u);
  EXPECT_EQ(ParseUnsigned("0x2000").value(), 0x2000u);
  EXPECT_EQ(ParseUnsigned("18446744073709551615").value(),
            std::numeric_limits<std::uint64_t>::max());
  for (const char* text : {"", "0x", "-1", "1.5", "18446744073709551616", "4 "}) {
    EXPECT_FALSE(ParseUnsigned(text).ok()) << text;
  }
}

TEST(SettingValuesTest, FunctionNamesAreDnsLabels) {
  EXPECT_TRUE(IsFunctionName("a"));
  EXPECT_TRUE(IsFunctionName("bert-large-2"));
  EXPECT_TRUE(IsFunctionName(std::string(63, 'x')));
  for (const char* text : {"", "-a", "a-", "A", "a_b", "a/b", "a.b", "a b"}) {
    EXPECT_FALSE(IsFunctionName(text)) << text;
  }
  EXPECT_FALSE(IsFunctionName(std::string(64, 'x')));
}

TEST(SettingValuesTest, AddressesHaveHostAndPort) {
  const auto plain = ParseHostAndPort("127.0.0.1:8000");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->host, "127.0.0.1");
  EXPECT_EQ(plain->port, 8000);
  const auto bracketed = ParseHostAndPort("[::1]:0");
  ASSERT_TRUE(bracketed.ok());
  EXPECT_EQ(bracketed->host, "::1");
  for (const char* text : {"", "8000", ":8000", "host:", "host:http", "::1:80", "[]:80", "a b:80",
                           "[x]:80", "host:70000", "host:-1", "http://host:80"}) {
    EXPECT_FALSE(ParseHostAndPort(text).ok()) << text;
  }
}

TEST(SettingValuesTest, TheNearestNameIsGuessedOnlyWhenItIsNear) {
  const std::vector<std::string_view> names = {"upstream", "deadline", "token_file"};
  EXPECT_EQ(NearestName("upstreem", names), "upstream");
  EXPECT_EQ(NearestName("tokenfile", names), "token_file");
  EXPECT_EQ(NearestName("xyz", names), "");
  EXPECT_EQ(NearestName(std::string(100'000, 'u'), names), "");
}

}  // namespace
}  // namespace torpor::server
