#include "emulator/node/byte_size.h"

#include <gtest/gtest.h>

namespace torpor::emulator {
namespace {

TEST(ByteSizeTest, ParsesNumbersWithUnits) {
  EXPECT_EQ(*ParseBytes("512MiB"), 512 * kMiB);
  EXPECT_EQ(*ParseBytes("1.5 GiB"), 3 * kGiB / 2);
  EXPECT_EQ(*ParseBytes("80GB"), 80'000'000'000U);
  EXPECT_EQ(*ParseBytes("4096"), 4096U);
  EXPECT_FALSE(ParseBytes("-1GiB").ok());
  EXPECT_FALSE(ParseBytes("1 gallon").ok());
  EXPECT_FALSE(ParseBytes("1e30GiB").ok());
  EXPECT_FALSE(ParseBytes("").ok());
}

}  // namespace
}  // namespace torpor::emulator
