#include "server/config/setting_values.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

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
