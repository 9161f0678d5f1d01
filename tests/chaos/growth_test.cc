#include "tests/chaos/growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::chaos {
namespace {

using testing::IsEmpty;

GrowthRecord RecordOf(const std::vector<double>& values) {
  GrowthRecord record;
  for (const double value : values) record.Add({{"descriptors", value}});
  return record;
}

TEST(Growth, OfTooFewMeasurementsNothingIsSaid) {
  EXPECT_THAT(RecordOf({1, 2, 3, 4, 5}).Judge(), IsEmpty());
}

TEST(Growth, TheWarmUpDoesNotCount) {
  const auto growth = RecordOf({1, 2, 900, 900, 900, 900, 900, 900, 900, 900}).Judge();
  EXPECT_TRUE(growth.at("descriptors").is_flat());
  EXPECT_EQ(growth.at("descriptors").first, 900);
}

TEST(Growth, MoreFromKillToKillIsSeen) {
  std::vector<double> values;
  for (int i = 0; i < 60; ++i) values.push_back(100 + 2 * i);
  EXPECT_FALSE(RecordOf(values).Judge().at("descriptors").is_flat());
}

TEST(Growth, AnOutlierIsNone) {
  std::vector<double> values(30, 100);
  values.back() = 10'000;
  EXPECT_TRUE(RecordOf(values).Judge().at("descriptors").is_flat());
}

}  // namespace
}  // namespace torpor::chaos
