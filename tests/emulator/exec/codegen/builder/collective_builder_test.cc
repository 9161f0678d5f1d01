#include "emulator/exec/codegen/builder/collective_builder.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

using CollectiveBuilderTest = BuilderTest;

TEST_F(CollectiveBuilderTest, TakesTheActiveLanesAndTheirOperand) {
  Open("mov.u32 %r1, %laneid;\nredux.sync.add.s32 %r2, %r1, 0xff;\nret;", "", {32, false, false});
  CollectiveBuilder collectives(parts_->operands);
  EXPECT_EQ(collectives.deposits(), nullptr);
  code()->CreateStore(code()->getInt32(0), parts_->registers.slot(instruction(0).operands[0].reg));
  parts_->operands.Begin(instruction(1));
  StoreResult(0, code().MaskBits(collectives.Participants(instruction(1))));
  StoreResult(1, collectives.Contribution(instruction(1), ptx::Type::kS32));
  Close();
  context_.mask = 0xffff;
  Run();
  EXPECT_EQ(results_[0][0], 0xffffU);
  EXPECT_EQ(results_[1][9], 9U);
}

TEST_F(CollectiveBuilderTest, UnitesTheMembersOfLanes) {
  Open("mov.u32 %r1, %laneid;\nmul.lo.u32 %r3, %r1, %r1;\nredux.sync.add.s32 %r2, %r1, %r3;\nret;");
  CollectiveBuilder collectives(parts_->operands);
  const ptx::Operand& members = instruction(2).operands[2];
  // Lane l has the members 1 << l.
  llvm::Value* bits =
      code()->CreateShl(code().Spread(code()->getInt32(1)), code().Spread(code()->getInt32(0), 1));
  code()->CreateStore(bits, parts_->registers.slot(members.reg));
  StoreResult(0, collectives.UnitedMembers(members, Mask(0x81)));
  StoreResult(1, collectives.IsOneElsewhere(members));
  Close();
  Run();
  EXPECT_EQ(results_[0][0], 0x81U);
  EXPECT_EQ(results_[1][0], 0U);
}

}  // namespace
}  // namespace torpor::emulator
