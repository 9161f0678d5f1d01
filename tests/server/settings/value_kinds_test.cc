#include "server/settings/value_kinds.h"

#include <gtest/gtest.h>

#include "server/settings/device_modes.h"
#include "server/settings/log_settings.h"

namespace torpor::server {
namespace {

// Every word is read as its value and every value has a word of its own.
template <typename Enum>
void ExpectWords(const std::string& expected) {
  for (const Word<Enum>& known : kWordsOf<Enum>) {
    EXPECT_EQ(FindWord<Enum>(known.word), known.value) << known.word;
    EXPECT_EQ(WordOf(known.value), known.word);
  }
  EXPECT_EQ(ListWords(kWordsOf<Enum>, &Word<Enum>::word), expected);
}

TEST(ValueKindsTest, WordsAndValuesCorrespond) {
  ExpectWords<AddressMode>("map or translate");
  ExpectWords<SwapPipeline>("none, parameter or group");
  ExpectWords<SwapWait>("allocation or range");
  ExpectWords<LogLevel>("trace, debug, info, warn, error or off");
  ExpectWords<LogFormat>("text or json");
}

TEST(ValueKindsTest, AnUnknownWordIsToldTheKnownOnes) {
  EXPECT_EQ(ChoiceKind<SwapWait>().Parse("ranges").status().message(),
            "unknown value \"ranges\"; expected allocation or range");
  EXPECT_EQ(ChoiceKind<SwapWait>().value_name(), "allocation|range");
  EXPECT_EQ(FlagKind().Parse("yes").status().message(),
            "unknown value \"yes\"; expected true or false");
}

TEST(ValueKindsTest, FormattedValuesAreReadAgain) {
  EXPECT_EQ(FlagKind().Parse(FlagKind().Format(true)).value(), true);
  EXPECT_EQ(SizeOrAutoKind().Format(0), "auto");
  EXPECT_EQ(SizeOrAutoKind().Parse("auto").value(), 0U);
  EXPECT_EQ(DurationOrOffKind().Format(Duration::zero()), "off");
  EXPECT_EQ(DurationOrOffKind().Parse("off").value(), Duration::zero());
  EXPECT_EQ(FileModeKind().Format(0660), "0660");
  EXPECT_EQ(FileModeKind().Parse("0660").value(), 0660U);
  EXPECT_EQ(IndexListKind().Format({0, 2}), "0,2");
  EXPECT_EQ(IndexListKind().Parse("0,2").value(), (std::vector<int>{0, 2}));
}

TEST(ValueKindsTest, AShareIsOfWhatThereIs) {
  const SizeOrShareKind kind{.min = kMiB};
  EXPECT_EQ(kind.Parse("80%").value(), (SizeOrShare{.percent = 80}));
  EXPECT_EQ(kind.Parse("2GiB").value(), (SizeOrShare{.bytes = 2 * kGiB}));
  EXPECT_EQ(kind.Format({.percent = 80}), "80%");
  EXPECT_EQ(kind.Format({.bytes = 2 * kGiB}), "2GiB");
  EXPECT_EQ((SizeOrShare{.percent = 80}).Of(1000), 800u);
  EXPECT_EQ((SizeOrShare{.percent = 100}).Of(~Bytes{0}), ~Bytes{0});
  EXPECT_EQ((SizeOrShare{.bytes = 7}).Of(1000), 7u);
  for (const char* text : {"0%", "101%", "%", "-1%", "80 percent", "1KiB", "", "8.5%"}) {
    EXPECT_FALSE(kind.Parse(text).ok()) << text;
  }
}

TEST(ValueKindsTest, RangesAreChecked) {
  EXPECT_TRUE(SizeKind{.min = kKiB}.Parse("1KiB").ok());
  EXPECT_FALSE(SizeKind{.min = kKiB}.Parse("1023").ok());
  EXPECT_FALSE(SizeKind{.max = kKiB}.Parse("1025").ok());
  EXPECT_FALSE(MultipleKind{.unit = kMiB}.Parse("0").ok());
  EXPECT_FALSE(DurationKind().Parse("0s").ok());
  EXPECT_FALSE(CountKind{}.Parse("0").ok());
  EXPECT_TRUE(LimitKind().Parse("0").ok());
  EXPECT_FALSE(LimitKind().Parse("1000001").ok());
  EXPECT_FALSE(FileModeKind().Parse("0888").ok());
  EXPECT_FALSE(FileModeKind().Parse("1000").ok());
}

}  // namespace
}  // namespace torpor::server
