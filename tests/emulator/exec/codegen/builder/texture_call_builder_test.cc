#include "emulator/exec/codegen/builder/texture_call_builder.h"

#include <cstddef>

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

using TextureCallBuilderTest = BuilderTest;

TEST_F(TextureCallBuilderTest, HandsTheRuntimeOperandsAndTakesResults) {
  Open("mov.u64 %rd1, 77;\nmov.u32 %r1, %laneid;\nmov.u32 %r2, %r1;\nret;");
  code()->CreateStore(code()->getInt64(77), parts_->registers.slot(instruction(0).operands[0].reg));
  code()->CreateStore(code()->getInt32(0), parts_->registers.slot(instruction(1).operands[0].reg));
  TextureCallBuilder textures(parts_->operands);
  textures.PutHandles(instruction(0).operands[0]);
  textures.PutInput(1, instruction(2).operands[1]);
  textures.PutComponent(3, instruction(2).operands[1], ptx::Type::kB32);
  textures.Call(offsetof(RuntimeCalls, texture), 5, Mask(0x3));
  StoreResult(0, textures.TakeComponent(0, 32));
  Close();
  calls_.texture = [](WarpContext*, std::uint32_t mask, TextureLanes* lanes,
                      std::uint64_t instruction) {
    for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      lanes->components[0][lane] = lanes->handles[lane] + 100ULL * lanes->inputs[1][lane] +
                                   10000ULL * lanes->components[3][lane] + instruction + mask;
    }
  };
  Run();
  EXPECT_EQ(results_[0][2], 77U + 200 + 20000 + 5 + 3);
}

}  // namespace
}  // namespace torpor::emulator
