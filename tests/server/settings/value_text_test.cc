#include "server/settings/value_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace torpor::server {
namespace {

TEST(ValueTextTest, SizesKnowBothKindsOfUnits) {
  EXPECT_EQ(ParseBytes("512MiB").value(), 512 * kMiB);
  EXPECT_EQ(ParseBytes("24 GiB").value(), 24 * kGiB);
  EXPECT_EQ(ParseBytes("1.5KiB").value(), 1536u);
  EXPECT_EQ(ParseBytes("80GB").value(), 80'000'000'000u);
  EXPECT_EQ(ParseBytes("4096").value(), 4096u);
  EXPECT_EQ(ParseBytes("0").value(), 0u);
}

TEST(ValueTextTest, WhatIsNoSizeIsRefused) {
  for (const char* text :
       {"", "MiB", "1 XiB", "-1", "1e3", "nan", "inf", "1MiBs", " 1", "99999999999999999999TiB"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

TEST(ValueTextTest, DurationsNeedAUnit) {
  EXPECT_EQ(ParseDuration("80ms").value(), std::chrono::milliseconds(80));
  EXPECT_EQ(ParseDuration("1.5s").value(), std::chrono::milliseconds(1500));
  EXPECT_EQ(ParseDuration("250us").value(), std::chrono::microseconds(250));
  EXPECT_EQ(ParseDuration("2h").value(), std::chrono::hours(2));
  for (const char* text : {"", "80", "ms", "-1s", "80 minutes", "99999999999999h"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

TEST(ValueTextTest, WholeNumbersAreDecimalOrHexadecimal) {
  EXPECT_EQ(ParseUnsigned("42").value(), 42u);
  EXPECT_EQ(ParseUnsigned("0x2000").value(), 0x2000u);
  EXPECT_EQ(ParseUnsigned("18446744073709551615").value(),
            std::numeric_limits<std::uint64_t>::max());
  for (const char* text : {"", "0x", "-1", "1.5", "18446744073709551616", "4 "}) {
    EXPECT_FALSE(ParseUnsigned(text).ok()) << text;
  }
}

TEST(ValueTextTest, FormattedValuesAreReadAgain) {
  EXPECT_EQ(FormatBytes(0), "0");
  EXPECT_EQ(FormatBytes(1537), "1537");
  EXPECT_EQ(FormatBytes(64 * kKiB), "64KiB");
  EXPECT_EQ(FormatBytes(1536 * kMiB), "1536MiB");
  EXPECT_EQ(FormatBytes(2048 * kGiB), "2TiB");
  EXPECT_EQ(FormatDuration(std::chrono::seconds(75)), "75s");
  EXPECT_EQ(FormatDuration(std::chrono::hours(2)), "2h");
  EXPECT_EQ(FormatDuration(std::chrono::milliseconds(1500)), "1500ms");
  EXPECT_EQ(FormatDuration(Duration::zero()), "0s");
  for (const Bytes bytes : {Bytes{0}, Bytes{1537}, 64 * kKiB, 3 * kGiB}) {
    EXPECT_EQ(ParseBytes(FormatBytes(bytes)).value(), bytes);
  }
  for (const Duration duration :
       {Duration(1), Duration(std::chrono::microseconds(250)), Duration(std::chrono::minutes(2))}) {
    EXPECT_EQ(ParseDuration(FormatDuration(duration)).value(), duration);
  }
}

TEST(ValueTextTest, QuotedTextHasNoControlCharacters) {
  EXPECT_EQ(Quoted("a\nb\x1b[0m"), "\"a?b?[0m\"");
  EXPECT_EQ(Quoted(std::string(100, 'x')), '"' + std::string(80, 'x') + "...\"");
}

}  // namespace
}  // namespace torpor::server
