#include "emulator/exec/codegen/builder/register_file.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

using RegisterFileTest = BuilderTest;

TEST_F(RegisterFileTest, KeepsLaneZeroOfLinearRegisters) {
  Open("mov.u32 %r1, %laneid;\nshl.b32 %r2, %r1, 2;\nret;");
  const std::uint32_t reg = instruction(1).operands[0].reg;
  code()->CreateStore(code()->getInt32(100), parts_->registers.slot(reg));
  StoreResult(0, parts_->registers.Read(reg, false));
  StoreResult(1, parts_->registers.Read(reg, true));
  Close();
  Run();
  EXPECT_EQ(results_[0][0], 100U);
  EXPECT_EQ(results_[0][31], 100U + 31 * 4);
  EXPECT_EQ(results_[1][0], 100U);
}

TEST_F(RegisterFileTest, KeepsAllLanesOfOtherRegisters) {
  Open("mov.u32 %r1, %laneid;\nmul.lo.u32 %r2, %r1, %r1;\nret;");
  const std::uint32_t reg = instruction(1).operands[0].reg;
  code()->CreateStore(code().Spread(code()->getInt32(7), 5), parts_->registers.slot(reg));
  StoreResult(0, parts_->registers.Read(reg, false));
  StoreResult(1, parts_->registers.Read(reg, true));
  Close();
  Run();
  EXPECT_EQ(results_[0][3], 22U);
  EXPECT_EQ(results_[1][0], 7U);
}

}  // namespace
}  // namespace torpor::emulator
