#include "emulator/exec/codegen/builder/branch_builder.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

// Blocks of the kernel note the lanes that run them as results.
class BranchBuilderTest : public BuilderTest {
 protected:
  void Start(const std::string& body) {
    Open(body);
    collectives_ = std::make_unique<CollectiveBuilder>(parts_->operands);
    suspension_ = std::make_unique<Suspension>(parts_->operands, parts_->stack, traits_,
                                               [](const ptx::Instruction&) {});
    ended_ = std::make_unique<EndedLanes>(code(), source_->function);
    branches_ = std::make_unique<BranchBuilder>(parts_->operands, *collectives_, *suspension_,
                                                parts_->stack, *ended_);
  }
  void EndBlocks() {
    const auto blocks = static_cast<std::uint32_t>(source_->flow.blocks.size());
    for (std::uint32_t block = 0; block < blocks; ++block) {
      if (block != 0) parts_->masks.Begin(block);
      StoreResult(block, code().MaskBits(parts_->masks.mask()));
      branches_->End(block);
    }
  }

  CodeTraits traits_;
  std::unique_ptr<CollectiveBuilder> collectives_;
  std::unique_ptr<Suspension> suspension_;
  std::unique_ptr<EndedLanes> ended_;
  std::unique_ptr<BranchBuilder> branches_;
};

TEST_F(BranchBuilderTest, LanesGoBothWaysAndMeetAgain) {
  Start("mov.u32 %r1, %laneid;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 bra A;\nmov.u32 %r2, 1;\nA:\nret;");
  code()->CreateStore(Mask(0x1f), parts_->registers.slot(instruction(2).guard));
  EndBlocks();
  EXPECT_EQ(Run(), 0U);
  EXPECT_EQ(results_[0][0], 0xffffffffU);
  EXPECT_EQ(results_[1][0], 0xffffffe0U);  // not taken
  EXPECT_EQ(results_[2][0], 0xffffffffU);
}

TEST_F(BranchBuilderTest, LanesLeaveByAGuardedExit) {
  Start("mov.u32 %r1, %laneid;\nsetp.lt.u32 %p1, %r1, 5;\n@%p1 exit;\nmov.u32 %r2, 1;\nret;");
  code()->CreateStore(Mask(0x1f), parts_->registers.slot(instruction(2).guard));
  EXPECT_EQ(branches_->CallAtEnd(0), nullptr);
  EndBlocks();
  EXPECT_EQ(Run(), 0U);
  EXPECT_EQ(results_[1][0], 0xffffffe0U);
}

TEST_F(BranchBuilderTest, AUniformBranchTakesOneSide) {
  Start("mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra A;\nmov.u32 %r2, 1;\nA:\nret;");
  code()->CreateStore(code()->getTrue(), parts_->registers.slot(instruction(2).guard));
  EndBlocks();
  EXPECT_EQ(Run(), 0U);
  EXPECT_EQ(results_[1][0], 0U);
  EXPECT_EQ(results_[2][0], 0xffffffffU);
}

}  // namespace
}  // namespace torpor::emulator
