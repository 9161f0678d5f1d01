#include "emulator/exec/codegen/builder/local_stack.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

class LocalStackTest : public BuilderTest {
 protected:
  LocalStackTest() {
    context_.local = memory_.data();
    context_.local_end = memory_.data() + memory_.size();
    calls_.local_overflow = [](WarpContext* warp) { warp->barrier_result = 99; };
  }

  std::array<std::uint8_t, 256> memory_ = {};
};

TEST_F(LocalStackTest, OpensAFrame) {
  Open("ret;");
  parts_->stack.Open(96);
  EXPECT_NE(parts_->stack.frame(), nullptr);
  Close();
  Run();
  EXPECT_EQ(context_.local, memory_.data() + 96);
  EXPECT_EQ(context_.barrier_result, 0U);
}

TEST_F(LocalStackTest, ClosesItsFrame) {
  Open("ret;");
  parts_->stack.Open(96);
  parts_->stack.Close();
  Close();
  Run();
  EXPECT_EQ(context_.local, memory_.data());
}

TEST_F(LocalStackTest, CloseWithoutAFrameDoesNothing) {
  Open("ret;");
  parts_->stack.Close();
  Close();
  Run();
  EXPECT_EQ(context_.local, memory_.data());
}

TEST_F(LocalStackTest, TellsTheRuntimeOfAnOverflow) {
  Open("ret;");
  parts_->stack.Open(257);
  Close();
  Run();
  EXPECT_EQ(context_.barrier_result, 99U);
}

}  // namespace
}  // namespace torpor::emulator
