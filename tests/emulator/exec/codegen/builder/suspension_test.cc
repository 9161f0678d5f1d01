#include "emulator/exec/codegen/builder/suspension.h"

#include <cstddef>
#include <vector>

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

// A kernel that waits once, at its barrier, and needs %r2 afterwards.
class SuspensionTest : public BuilderTest {
 protected:
  static constexpr char kWaits[] =
      "mov.u32 %r1, %laneid;\nmul.lo.u32 %r2, %r1, %r1;\nbar.sync 0;\nst.shared.u32 [%r1], %r2;\n"
      "ret;";

  SuspensionTest() {
    calls_.yield = [](WarpContext* warp) { return warp->barrier_result; };
    context_.saved_state = saved_;
  }

  void Build() {
    Open(kWaits);
    // Open has ended the entry block; here the suspension does.
    parts_->masks.entry(0)->getSinglePredecessor()->getTerminator()->eraseFromParent();
    code()->SetInsertPoint(&generated_.function().getEntryBlock());
    suspension_ = std::make_unique<Suspension>(
        parts_->operands, parts_->stack, traits_,
        [this](const ptx::Instruction& origin) { recomputed_.push_back(&origin); });
    suspension_->Enter();
    parts_->masks.Begin(0);
    const std::uint32_t reg = instruction(1).operands[0].reg;
    code()->CreateStore(code().Spread(code()->getInt32(5), 2), parts_->registers.slot(reg));
    suspension_->WaitUnless(parts_->context.Call(offsetof(RuntimeCalls, yield),
                                                 code()->getInt32Ty(), {parts_->context.pointer()}),
                            instruction(2));
    StoreResult(0, parts_->registers.Read(reg, false));
    Close();
  }

  alignas(kSavedStateAlignment) std::uint8_t saved_[1024] = {};
  CodeTraits traits_;
  std::vector<const ptx::Instruction*> recomputed_;
  std::unique_ptr<Suspension> suspension_;
};

TEST_F(SuspensionTest, GoesOnAtOnceIfTheRuntimeSaysSo) {
  Build();
  context_.barrier_result = 1;
  EXPECT_EQ(Run(), 0U);
  EXPECT_EQ(results_[0][10], 25U);
  EXPECT_EQ(context_.resume_point, 0U);
}

TEST_F(SuspensionTest, LeavesAndGoesOnWithItsState) {
  Build();
  EXPECT_EQ(Run(), 1U);
  EXPECT_NE(context_.resume_point, 0U);
  EXPECT_EQ(results_[0][10], 0U);
  EXPECT_EQ(Run(), 0U);
  EXPECT_EQ(results_[0][10], 25U);
}

TEST_F(SuspensionTest, SaysHowMuchItSavesAndWhatItComputesAnew) {
  Build();
  EXPECT_GE(traits_.saved_bytes, sizeof(LaneNumbers));
  EXPECT_EQ(traits_.saved_bytes % kSavedStateAlignment, 0U);
  ASSERT_EQ(recomputed_.size(), 1U);  // %laneid
  EXPECT_EQ(recomputed_[0], &instruction(0));
}

}  // namespace
}  // namespace torpor::emulator
