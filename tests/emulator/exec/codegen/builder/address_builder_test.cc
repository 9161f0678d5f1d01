#include "emulator/exec/codegen/builder/address_builder.h"

#include <cstddef>

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

using AddressBuilderTest = BuilderTest;

TEST_F(AddressBuilderTest, SharedVariablesAreOffsets) {
  Open(
      ".shared .align 16 .b8 a[32];\n.shared .align 16 .b8 b[16];\n"
      "ld.shared.u32 %r1, [a];\nld.shared.u32 %r2, [b+4];\nret;");
  const ptx::Operand& operand = instruction(1).operands[1];
  EXPECT_EQ(parts_->addresses.SpaceOf(instruction(1), operand), ptx::Space::kShared);
  const LaneAddress address = parts_->addresses.Of(operand, ptx::Space::kShared);
  EXPECT_TRUE(address.shape.uniform());
  EXPECT_EQ(address.offset, 4);
  StoreResult(0, address.value);
  Close();
  Run();
  EXPECT_EQ(results_[0][0], 32U);
}

TEST_F(AddressBuilderTest, SymbolsComeFromTheContext) {
  Open("ld.global.u32 %r1, [g+8];\nret;", ".global .u32 g[4];\n");
  const LaneAddress address = parts_->addresses.Of(instruction(0).operands[1], ptx::Space::kGlobal);
  StoreResult(0, address.value);
  Close();
  const std::uint64_t symbols[] = {1000};
  context_.symbols = symbols;
  Run();
  EXPECT_EQ(results_[0][0], 1008U);
}

TEST_F(AddressBuilderTest, LanesOfALinearRegisterFollowFromLaneZero) {
  Open("mov.u32 %r1, %laneid;\nmul.wide.u32 %rd1, %r1, 4;\nld.global.u32 %r2, [%rd1+16];\nret;");
  const ptx::Operand& operand = instruction(2).operands[1];
  code()->CreateStore(code()->getInt64(500), parts_->registers.slot(operand.reg));
  const LaneAddress address = parts_->addresses.Of(operand, ptx::Space::kGlobal);
  EXPECT_TRUE(address.linear());
  StoreResult(0, parts_->addresses.LaneAddresses(address));
  StoreResult(1, parts_->addresses.Advanced(address, 100).value);
  Close();
  Run();
  EXPECT_EQ(results_[0][3], 528U);
  EXPECT_EQ(results_[1][0], 616U);
}

TEST_F(AddressBuilderTest, PointersToSharedMemoryAddItsBase) {
  Open("ret;");
  LaneAddress address;
  address.space = ptx::Space::kShared;
  address.offset = 3;
  llvm::Value* pointer = parts_->addresses.Pointer(address, code()->getInt32(20));
  StoreResult(0, code()->CreatePtrToInt(pointer, code()->getInt64Ty()));
  Close();
  context_.shared = reinterpret_cast<std::uint8_t*>(std::uintptr_t{4000});
  Run();
  EXPECT_EQ(results_[0][0], 4023U);
}

TEST_F(AddressBuilderTest, RowsBeginAtTheirFirstLane) {
  Open("ret;", "", {8, false, true});
  LaneAddress address;
  address.value = code()->getInt64(100);
  address.shape = ptx::LaneShape::Linear(4, 1000, 0);
  StoreResult(0, parts_->addresses.RowOf(address, 2).value);
  Close();
  Run();
  EXPECT_EQ(results_[0][0], 2100U);
}

TEST_F(AddressBuilderTest, RefusesTheAddressOfACallsParameter) {
  Open("{\n.param .b32 p;\nst.param.b32 [p], %r1;\n}\nret;");
  const ptx::Operand& operand = instruction(0).operands[0];
  EXPECT_EQ(parts_->addresses.Of(operand, ptx::Space::kParam).value, nullptr);
  EXPECT_NE(parts_->error.message().find("'p'"), std::string::npos) << parts_->error.message();
}

}  // namespace
}  // namespace torpor::emulator
