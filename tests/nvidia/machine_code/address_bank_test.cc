#include "nvidia/machine_code/address_bank.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace torpor::sass {
namespace {

struct Words {
  std::uint64_t low;
  std::uint64_t high;
};

// What ptxas makes of them for sm_75.
constexpr Words kMoveWord = {0x0100'0e00'ff04'7624, 0x000f'e400'078e'00ff};       // c[0x4][0x38]
constexpr Words kMoveHighWord = {0x0100'0f00'ff05'7624, 0x000f'e200'078e'00ff};   // c[0x4][0x3c]
constexpr Words kLoadUniform = {0x0100'0600'0004'7ab9, 0x000f'c600'0000'0a00};    // c[0x4][0x18]
constexpr Words kLoadOtherBank = {0x00c0'0000'0505'7b82, 0x000e'6200'0000'0800};  // c[0x3][R5]
constexpr Words kLoadByR0 = {0x0100'0000'0002'7b82, 0x0000'6200'0000'0a00};       // c[0x4][R0]
constexpr Words kLoadDirect = {0x0100'0200'ff02'7b82, 0x000e'2200'0000'0a00};     // c[0x4][0x8]
constexpr Words kJumpToItself = {0xffff'fff0'0000'7947, 0x000f'c000'0383'ffff};   // BRA
constexpr Words kNothing = {0x0000'0000'00ff'7918, 0x000f'c000'0000'0000};        // NOP, of RZ

// MOV R`reg`, `number`.
Words Move(std::uint64_t number, unsigned reg) {
  return {number << 32 | reg << 16 | 0x7802, 0x000f'e200'0000'0f00};
}
// BRA, so many instructions on.
Words Jump(std::uint64_t by) { return {(by * 16) << 32 | 0x7947, 0x000f'c000'0380'0000}; }

bool MayRead(const std::vector<Words>& code, const std::vector<std::uint64_t>& places) {
  return MayReadAddress(std::as_bytes(std::span(code)), places);
}

TEST(AddressBankTest, AWordOfAnAddressIsRead) {
  EXPECT_TRUE(MayRead({kNothing, kMoveWord}, {0x38}));
  EXPECT_TRUE(MayRead({kMoveHighWord}, {0x38}));
  EXPECT_FALSE(MayRead({kMoveHighWord, kMoveWord}, {0x30, 0x40}));
  EXPECT_TRUE(MayRead({kLoadUniform}, {0x8, 0x18}));
  EXPECT_FALSE(MayRead({kLoadUniform}, {0x8, 0x10, 0x20}));
  EXPECT_TRUE(MayRead({kLoadDirect}, {0x8}));
  EXPECT_FALSE(MayRead({kLoadDirect}, {0x0, 0x10}));
}

TEST(AddressBankTest, OtherBanksAndNumbersAreNot) {
  EXPECT_FALSE(MayRead({kLoadOtherBank, kNothing, kJumpToItself}, {0}));
  EXPECT_FALSE(MayRead({Move(0x0100'0e00, 4)}, {0x38}));  // the bits of kMoveWord as a number
  EXPECT_FALSE(MayRead({}, {0}));
}

TEST(AddressBankTest, AnIndexThatWasJustMovedIsKnown) {
  EXPECT_TRUE(MayRead({Move(0x10, 0), kLoadByR0}, {0x10}));
  EXPECT_FALSE(MayRead({Move(0x10, 0), kLoadByR0}, {0x8, 0x18}));
  EXPECT_FALSE(MayRead({Move(0x8, 0), Move(0x10, 0), Move(0x8, 1), kNothing, kLoadByR0}, {0x8}));
}

TEST(AddressBankTest, AnyOtherIndexMayBeAll) {
  EXPECT_TRUE(MayRead({kLoadByR0}, {0x10}));
  EXPECT_TRUE(MayRead({Move(0x8, 1), kLoadByR0}, {0x10}));
  Words if_a_predicate = Move(0x8, 0);
  if_a_predicate.low &= ~std::uint64_t{0x7000};
  EXPECT_TRUE(MayRead({if_a_predicate, kLoadByR0}, {0x10}));
  // R3 of four that a load may write.
  Words load_by_r3 = kLoadByR0;
  load_by_r3.low |= 3 << 24;
  EXPECT_FALSE(MayRead({Move(0x8, 3), load_by_r3}, {0x10}));
  EXPECT_FALSE(MayRead({Move(0x8, 3), Move(0x10, 0), load_by_r3}, {0x10}));
  EXPECT_TRUE(MayRead({Move(0x8, 3), kLoadDirect, load_by_r3}, {0x10})) << "two or four registers";
  Words of_a_mode = kLoadByR0;
  of_a_mode.high |= std::uint64_t{1} << 14;
  EXPECT_TRUE(MayRead({Move(0x8, 0), of_a_mode}, {0x10}));
}

TEST(AddressBankTest, CallsKeepRegisters) {
  const Words call = {0x0000'0000'0200'7343, 0x002f'ea00'03c0'0000};  // CALL.ABS.NOINC R2
  EXPECT_FALSE(MayRead({Move(0x8, 0), call, kLoadByR0}, {0x10}));
  Words load_by_r4 = kLoadByR0;
  load_by_r4.low |= 4 << 24;
  EXPECT_FALSE(MayRead({Move(0x8, 4), load_by_r4}, {0x10}));
  EXPECT_TRUE(MayRead({Move(0x8, 4), call, load_by_r4}, {0x10})) << "what it returns";
}

TEST(AddressBankTest, WhereOthersMayComeInNothingIsKnown) {
  EXPECT_TRUE(MayRead({Move(0x8, 0), kJumpToItself, kLoadByR0}, {0x10}));
  EXPECT_FALSE(MayRead({Jump(0), Move(0x8, 0), kNothing, kLoadByR0}, {0x10}));
  EXPECT_TRUE(MayRead({Jump(1), Move(0x8, 0), kNothing, kLoadByR0}, {0x10}));
  EXPECT_TRUE(MayRead({Jump(2), Move(0x8, 0), kNothing, kLoadByR0}, {0x10}));
  EXPECT_FALSE(MayRead({Jump(3), Move(0x8, 0), kNothing, kLoadByR0, kNothing}, {0x10}));
  const Words by_table = {0x0000'0000'0000'7949, 0};
  EXPECT_TRUE(MayRead({by_table, Move(0x8, 0), kLoadByR0}, {0x10}));
}

TEST(AddressBankTest, BanksThatRegistersTellMayBeThis) {
  Words bindless = kMoveWord;
  bindless.low &= ~(std::uint64_t{0x1f} << 54);
  EXPECT_FALSE(MayRead({bindless}, {0x38}));
  bindless.high |= std::uint64_t{1} << 27;
  EXPECT_TRUE(MayRead({bindless}, {0x38}));
}

}  // namespace
}  // namespace torpor::sass
