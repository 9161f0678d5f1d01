#include "emulator/exec/codegen/builder/block_masks.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

class BlockMasksTest : public BuilderTest {
 protected:
  // %p1 of each lane.
  void SetGuard(std::uint32_t bits) {
    const std::uint32_t reg = instruction(2).guard;
    code()->CreateStore(Mask(bits), parts_->registers.slot(reg));
  }
  static constexpr char kGuarded[] =
      "mov.u32 %r1, %laneid;\nsetp.lt.u32 %p1, %r1, 5;\n@!%p1 mov.u32 %r2, 1;\nret;";
};

TEST_F(BlockMasksTest, StartsWithTheLanesOfTheWarp) {
  Open("ret;", "", {32, false, false});
  StoreResult(0, code().MaskBits(parts_->masks.mask()));
  StoreResult(1, parts_->masks.Live());
  Close();
  context_.mask = 0x7f;
  Run();
  EXPECT_EQ(results_[0][0], 0x7fU);
  EXPECT_EQ(results_[1][0], 0x7fU);
}

TEST_F(BlockMasksTest, KnowsThatWholeWarpsHaveAllLanes) {
  Open("ret;");
  EXPECT_TRUE(LaneBuilder::IsAllOnes(parts_->masks.mask()));
}

TEST_F(BlockMasksTest, ActiveLanesFollowTheGuard) {
  Open(kGuarded);
  SetGuard(0xff);
  StoreResult(0, code().MaskBits(parts_->masks.Active(instruction(2))));
  StoreResult(1, parts_->masks.ScalarGuard(instruction(2)));
  EXPECT_EQ(parts_->masks.Active(instruction(0)), parts_->masks.mask());
  Close();
  Run();
  EXPECT_EQ(results_[0][0], 0xffffff00U);
  EXPECT_EQ(results_[1][0], 0U);
}

TEST_F(BlockMasksTest, SkipsCodeThatNoLaneRuns) {
  Open(kGuarded);
  SetGuard(0xffffffff);
  BlockMasks& masks = parts_->masks;
  masks.IfAny(masks.Active(instruction(2)), [&] { StoreResult(0, code()->getInt32(1)); });
  masks.IfAny(masks.mask(), [&] { StoreResult(1, code()->getInt32(1)); });
  Close();
  Run();
  EXPECT_EQ(results_[0][0], 0U);
  EXPECT_EQ(results_[1][0], 1U);
}

TEST_F(BlockMasksTest, KeepsTheLanesThatWaitAtEachBlock) {
  Open("mov.u32 %r1, %laneid;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra A;\nmov.u32 %r2, 1;\nA:\nret;");
  BlockMasks& masks = parts_->masks;
  masks.SetWaiting(Mask(0x1f), 1);
  masks.SetWaiting(Mask(0xe0), 2);
  StoreResult(0, code().MaskBits(masks.Waiting(1)));
  StoreResult(1, code().MaskBits(masks.Waiting(2)));
  Close();
  Run();
  EXPECT_EQ(results_[0][0], 0x1fU);
  EXPECT_EQ(results_[1][0], 0xe0U);
}

}  // namespace
}  // namespace torpor::emulator
