#include "nvidia/machine_code/instruction.h"

#include <gtest/gtest.h>

#include <array>

namespace torpor::sass {
namespace {

MachineInstruction Make(std::uint64_t low, std::uint64_t high, std::uint64_t offset = 0) {
  const std::array<std::uint64_t, 2> words = {low, high};
  return Decode(words.data(), offset);
}

// IMAD.WIDE R4, R6, R7, c[0x0][0x168]
TEST(InstructionTest, SourcesStandWhereTheFormSays) {
  const MachineInstruction wide = Make(0x00005a0006047625, 0x000fc800078e0207);
  EXPECT_EQ(wide.opcode(), 0x025U);
  EXPECT_EQ(wide.destination(), (Register{RegisterFile::kRegister, 4}));
  EXPECT_EQ(wide.a().reg.number, 6);
  EXPECT_EQ(wide.b().reg.number, 7);
  EXPECT_EQ(wide.c().kind, SourceOperand::Kind::kConstant);
  EXPECT_EQ(wide.c().bank, 0U);
  EXPECT_EQ(wide.c().offset, 0x168U);
  EXPECT_TRUE(wide.guard().always());
}

// ISETP.EQ.U32.AND P0, PT, R5, UR8, PT
TEST(InstructionTest, ASourceMayBeARegisterOfTheWarp) {
  const MachineInstruction compare = Make(0x0000000805007c0c, 0x000fe4000bf02070);
  EXPECT_FALSE(compare.is_uniform());
  EXPECT_EQ(compare.b().reg, (Register{RegisterFile::kUniform, 8}));
  EXPECT_EQ(compare.PredicateAt(81).number, 0);
  EXPECT_TRUE(compare.PredicateAt(84).is_fixed());
}

// UIADD3 UR4, UP0, UR4, 0x8, URZ
TEST(InstructionTest, InstructionsOfTheWarpHaveItsRegisters) {
  const MachineInstruction add = Make(0x0000000804047890, 0x000fe2000ff1e03f);
  EXPECT_TRUE(add.is_uniform());
  EXPECT_EQ(add.destination(), (Register{RegisterFile::kUniform, 4}));
  EXPECT_EQ(add.b().immediate, 8U);
  EXPECT_TRUE(add.c().is_zero());
  EXPECT_EQ(add.PredicateAt(81), (Register{RegisterFile::kUniformPredicate, 0}));
}

// IADD3.X R21, ~R0, R21, R3, P0, P1
TEST(InstructionTest, SourcesHaveModifiers) {
  const MachineInstruction add = Make(0x0000001500157210, 0x000fcc00007e2503);
  EXPECT_TRUE(add.a().negated);
  EXPECT_FALSE(add.b().negated);
  EXPECT_FALSE(add.c().negated);
  EXPECT_EQ(add.PredicateSourceAt(77, 80).reg.number, 1);
  EXPECT_EQ(add.PredicateSourceAt(87, 90).reg.number, 0);
}

// @!P0 BRA, forwards and backwards
TEST(InstructionTest, BranchesCountFromTheInstructionBehind) {
  const MachineInstruction forwards = Make(0x000000c000008947, 0x000fea0003800000, 0x2e0);
  EXPECT_TRUE(forwards.guard().negated);
  EXPECT_EQ(forwards.branch_target(), 0x3b0U);
  const MachineInstruction backwards = Make(0xffffff9000008947, 0x000fea000383ffff, 0x520);
  EXPECT_EQ(backwards.branch_target(), 0x4c0U);
}

TEST(InstructionTest, BitsMayCrossTheWords) {
  const MachineInstruction instruction = Make(0xf000000000000000, 0x5);
  EXPECT_EQ(instruction.Bits(60, 8), 0x5fU);
  EXPECT_EQ(instruction.SignedBits(60, 7), -0x21);
  EXPECT_EQ(instruction.Bits(64, 64), 5U);
}

TEST(InstructionTest, RegistersBehindTheLastAreNone) {
  EXPECT_TRUE((Register{RegisterFile::kRegister, 254}).Next().is_fixed());
  EXPECT_TRUE((Register{RegisterFile::kRegister, Register::kZero}).Next(2).is_fixed());
  EXPECT_EQ((Register{RegisterFile::kUniform, 4}).Next().number, 5);
}

}  // namespace
}  // namespace torpor::sass
