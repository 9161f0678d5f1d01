#include "emulator/exec/codegen/builder/fragment_memory.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

class FragmentMemoryTest : public BuilderTest {
 protected:
  // Registers %r1 and %r2 of all lanes hold 10 and 20, plus the lane.
  void Start() {
    Open(
        "mov.u32 %r1, %laneid;\nmul.lo.u32 %r1, %r1, %r1;\nmul.lo.u32 %r2, %r1, %r1;\n"
        "mov.b64 %rd1, {%r1, %r2};\nret;");
    std::uint32_t start = 10;
    for (const ptx::Operand& element : fragment().elements) {
      code()->CreateStore(code().Spread(code()->getInt32(start), 1),
                          parts_->registers.slot(element.reg));
      start += 10;
    }
  }
  const ptx::Operand& fragment() { return instruction(3).operands[1]; }
};

TEST_F(FragmentMemoryTest, ReadsRegistersAsOnePieceOfMemory) {
  Start();
  FragmentMemory fragments(parts_->operands);
  llvm::Value* memory = fragments.Read(fragment(), ptx::MatrixPart::kA, 32);
  StoreResult(0, code()->CreateLoad(Lanes(code()->getInt32Ty()), code().VectorAt(memory, 32, 1)));
  Close();
  Run();
  EXPECT_EQ(results_[0][5], 25U);
}

TEST_F(FragmentMemoryTest, WritesMemoryToRegisters) {
  Start();
  FragmentMemory fragments(parts_->operands);
  parts_->operands.Begin(instruction(3));
  fragments.Write(instruction(3), fragment(), 32, nullptr, [&](llvm::Value* memory) {
    code()->CreateStore(code().Spread(code()->getInt32(1)), code().VectorAt(memory, 32, 0));
    code()->CreateStore(code().Spread(code()->getInt32(2)), code().VectorAt(memory, 32, 1));
  });
  StoreResult(0, parts_->registers.Read(fragment().elements[0].reg, false));
  StoreResult(1, parts_->registers.Read(fragment().elements[1].reg, false));
  Close();
  Run();
  EXPECT_EQ(results_[0][31], 1U);
  EXPECT_EQ(results_[1][31], 2U);
}

TEST_F(FragmentMemoryTest, ASingleRegisterIsAFragmentOfOne) {
  Start();
  EXPECT_EQ(RegistersOf(fragment()).size(), 2U);
  EXPECT_EQ(RegistersOf(fragment().elements[0]).size(), 1U);
}

}  // namespace
}  // namespace torpor::emulator
