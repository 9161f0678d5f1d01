#include "emulator/ptx/special_register.h"

#include <gtest/gtest.h>

namespace torpor::ptx {
namespace {

TEST(SpecialRegisterTest, NamesAreKnown) {
  SpecialRegisterName name{};
  ASSERT_TRUE(ParseSpecialRegister("%ctaid.y", name));
  EXPECT_EQ(name.special, SpecialRegister::kCtaidY);
  ASSERT_TRUE(ParseSpecialRegister("WARP_SZ", name));
  EXPECT_EQ(name.special, SpecialRegister::kWarpSize);
}

TEST(SpecialRegisterTest, NumbersAreIndices) {
  SpecialRegisterName name{};
  ASSERT_TRUE(ParseSpecialRegister("%envreg12", name));
  EXPECT_EQ(name.special, SpecialRegister::kEnvreg);
  EXPECT_EQ(name.index, 12U);
}

TEST(SpecialRegisterTest, OtherNamesAreRefused) {
  SpecialRegisterName name{};
  EXPECT_FALSE(ParseSpecialRegister("%envreg", name));
  EXPECT_FALSE(ParseSpecialRegister("%envreg1x", name));
  EXPECT_FALSE(ParseSpecialRegister("%r1", name));
}

}  // namespace
}  // namespace torpor::ptx
