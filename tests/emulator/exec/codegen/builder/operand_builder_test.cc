#include "emulator/exec/codegen/builder/operand_builder.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

class OperandBuilderTest : public BuilderTest {
 protected:
  OperandBuilder& operands() { return parts_->operands; }
};

TEST_F(OperandBuilderTest, ReadsImmediatesAndSpecialRegisters) {
  Open("add.u32 %r1, %laneid, 12;\nret;");
  operands().Begin(instruction(0));
  StoreResult(0, operands().ReadVector(instruction(0).operands[1], ptx::Type::kU32));
  StoreResult(1, operands().ReadScalar(instruction(0).operands[2], ptx::Type::kU32));
  Close();
  Run();
  EXPECT_EQ(results_[0][17], 17U);
  EXPECT_EQ(results_[1][0], 12U);
}

TEST_F(OperandBuilderTest, ComputesLinearResultsForLaneZero) {
  Open("add.u32 %r1, %laneid, 12;\nmul.lo.u32 %r2, %r1, %r1;\nret;");
  operands().Begin(instruction(0));
  EXPECT_TRUE(operands().scalar());
  EXPECT_EQ(operands().result().stride, 1);
  operands().Begin(instruction(1));
  EXPECT_FALSE(operands().scalar());
}

TEST_F(OperandBuilderTest, WritesWhereTheGuardHolds) {
  Open(
      "mov.u32 %r1, %laneid;\nmul.lo.u32 %r1, %r1, %r1;\nsetp.lt.u32 %p1, %r1, 5;\n"
      "@%p1 mul.lo.u32 %r1, %r1, %r1;\nret;");
  const ptx::Instruction& guarded = instruction(3);
  code()->CreateStore(Mask(0x2), parts_->registers.slot(guarded.guard));
  const std::uint32_t reg = guarded.operands[0].reg;
  code()->CreateStore(code().Spread(code()->getInt32(0)), parts_->registers.slot(reg));
  operands().Begin(guarded);
  operands().Write(guarded, guarded.operands[0], code().Spread(code()->getInt32(50), 1),
                   ptx::Type::kU32);
  StoreResult(0, parts_->registers.Read(reg, false));
  Close();
  Run();
  EXPECT_EQ(results_[0][0], 0U);
  EXPECT_EQ(results_[0][1], 51U);
  EXPECT_EQ(results_[0][2], 0U);
}

TEST_F(OperandBuilderTest, ExtendsBySignOnWriting) {
  Open("mov.b16 %h1, -2;\ncvt.s32.s16 %r1, %h1;\nret;");
  const ptx::Instruction& convert = instruction(1);
  operands().Begin(convert);
  operands().Write(convert, convert.operands[0], code()->getInt16(0xfffe), ptx::Type::kS16);
  StoreResult(0, parts_->registers.Read(convert.operands[0].reg, true));
  Close();
  Run();
  EXPECT_EQ(results_[0][0], 0xfffffffeU);
}

TEST_F(OperandBuilderTest, ReportsTheFirstInstructionOnly) {
  Open("mov.u32 %r1, 1;\nret;");
  EXPECT_TRUE(operands().Expect(instruction(0), 2));
  EXPECT_FALSE(operands().Expect(instruction(0), 3));
  operands().Unsupported(instruction(0), "later");
  EXPECT_NE(parts_->error.message().find("'mov.u32' (operands) in k"), std::string::npos)
      << parts_->error.message();
}

}  // namespace
}  // namespace torpor::emulator
