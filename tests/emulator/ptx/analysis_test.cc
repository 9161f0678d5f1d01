#include <gtest/gtest.h>

#include <string>

#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/parser.h"
#include "emulator/ptx/strided_loop.h"
#include "emulator/ptx/tile_loads.h"

namespace torpor::ptx {
namespace {

class AnalysisTest : public ::testing::Test {
 protected:
  // A kernel with the registers %r, %rd and %p, and a parameter `out`.
  void Analyse(const std::string& body, BlockShape shape = {32, true, true}) {
    auto parsed = Parse(
        ".version 9.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 out) {\n"
        ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .pred %p<9>;\n" +
        body + "\n}");
    ASSERT_TRUE(parsed) << parsed.failure().message;
    module_ = std::move(*parsed);
    flow_ = BuildControlFlow(module_.functions[0]);
    lanes_ = std::make_unique<LaneAnalysis>(module_, module_.functions[0], flow_, shape, 0);
  }
  const LaneShape& R(unsigned number) const { return lanes_->shape(number); }
  const LaneShape& Rd(unsigned number) const { return lanes_->shape(20 + number); }

  Module module_;
  ControlFlow flow_;
  std::unique_ptr<LaneAnalysis> lanes_;
};

constexpr char kIndex[] =
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.s32 %r4, %r1, %r2, %r3;\n";

TEST_F(AnalysisTest, AddressesOfConsecutiveElementsAreLinear) {
  Analyse(std::string(kIndex) +
          "ld.param.u64 %rd1, [out]; mul.wide.s32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;\n"
          "mul.wide.u32 %rd4, %r4, 8; ld.global.u32 %r5, [%rd3]; ret;");
  EXPECT_TRUE(R(1).uniform());
  EXPECT_EQ(R(4).stride, 1);
  EXPECT_EQ(Rd(3).stride, 4);
  EXPECT_TRUE(Rd(4).linear());  // whole rows never wrap within a warp
  EXPECT_TRUE(R(5).varying());
}

TEST_F(AnalysisTest, ARegisterThatIsOnlySelectedIntoItselfIsWritten) {
  Analyse(
      "mov.u32 %r1, %tid.x; mov.u32 %r3, 0;\n"
      "$L_loop: setp.eq.u32 %p1, %r3, 2; selp.b32 %r2, %r1, %r2, %p1;\n"
      "add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 4; @%p2 bra $L_loop; ret;");
  EXPECT_FALSE(R(2).uniform()) << "though nothing is written to it first";
  EXPECT_TRUE(R(3).uniform());
}

TEST_F(AnalysisTest, UnsignedIndicesThatMayWrapAreNotLinear) {
  Analyse(std::string(kIndex) + "add.u32 %r5, %r4, -1; mul.wide.u32 %rd1, %r5, 4; ret;");
  EXPECT_EQ(R(5).stride, 1);
  EXPECT_TRUE(Rd(1).varying());
}

TEST_F(AnalysisTest, UnsignedRowsThatMayWrapAreNotLinear) {
  Analyse("mov.u32 %r1, %tid.y; add.u32 %r2, %r1, -1; mul.wide.u32 %rd1, %r2, 4; ret;",
          {16, false, true});
  EXPECT_EQ(R(2).row_stride, 1);
  EXPECT_TRUE(Rd(1).varying());
}

TEST_F(AnalysisTest, BlocksThatAreNotRowsVary) {
  Analyse(kIndex, {0, false, true});
  EXPECT_TRUE(R(3).varying());
}

TEST_F(AnalysisTest, RowsOfHalfAWarpHaveTwoStrides) {
  Analyse(
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; shl.b32 %r3, %r2, 6;\n"
      "shl.b32 %r4, %r1, 2; add.s32 %r5, %r3, %r4; mov.u32 %r6, %laneid; ret;",
      {16, false, true});
  EXPECT_EQ(R(5).stride, 4);
  EXPECT_EQ(R(5).row_stride, 64);
  EXPECT_EQ(R(6).row_stride, 16);
  EXPECT_FALSE(R(3).uniform());
}

TEST_F(AnalysisTest, OrAddsBitsThatNoLaneHas) {
  Analyse(
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; shl.b32 %r3, %r1, 4; or.b32 %r4, %r3, 8;\n"
      "add.s32 %r5, %r3, %r2; or.b32 %r6, %r5, 1; ret;",
      {16, false, true});
  EXPECT_TRUE(R(4).linear());
  EXPECT_EQ(R(4).stride, 16);
  EXPECT_TRUE(R(6).varying());  // the second row has that bit already
}

TEST_F(AnalysisTest, RowsOfAMatrixOfAnyWidthBeginAnywhere) {
  // %r5 = tid.y * width + tid.x, advanced in a loop, as an address; the width is a parameter.
  Analyse(
      "ld.param.u64 %rd1, [out]; cvt.u32.u64 %r4, %rd1; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;\n"
      "mul.lo.s32 %r3, %r2, %r4; add.s32 %r5, %r3, %r1; mul.wide.s32 %rd2, %r5, 4;\n"
      "add.s64 %rd3, %rd1, %rd2; mov.u32 %r6, 0;\n"
      "L: ld.global.u32 %r7, [%rd3]; add.s64 %rd3, %rd3, 64; mul.wide.u32 %rd4, %r5, 4;\n"
      "add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, 9; @%p1 bra L; ret;",
      {16, false, true});
  EXPECT_TRUE(R(3).row_uniform());
  EXPECT_FALSE(R(3).uniform());
  EXPECT_TRUE(Rd(3).rows());
  EXPECT_EQ(Rd(3).stride, 4);
  EXPECT_TRUE(R(7).varying());
  EXPECT_TRUE(Rd(4).varying());  // an unsigned index may wrap within a row
}

TEST_F(AnalysisTest, WarpAndLaneOfAThread) {
  Analyse(
      "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; and.b32 %r3, %r1, 31; and.b32 %r4, %r1, -32;\n"
      "shr.u32 %r5, %r1, 4; and.b32 %r6, %r1, 15; add.s32 %r7, %r1, 1; shr.u32 %r8, %r7, 5;\n"
      "shr.s32 %r9, %r1, 31; shr.u32 %r10, %r1, 3; and.b32 %r11, %r10, 0x1ffffffc;\n"
      "and.b32 %r12, %r10, 0x1ffffffe; ret;");
  EXPECT_TRUE(R(2).uniform());
  EXPECT_EQ(R(3).stride, 1);
  EXPECT_TRUE(R(4).uniform());
  EXPECT_TRUE(R(5).varying());
  EXPECT_TRUE(R(6).varying());
  EXPECT_TRUE(R(8).varying());  // thread 31 is already the next warp's
  EXPECT_TRUE(R(9).uniform());
  EXPECT_TRUE(R(10).varying());
  EXPECT_TRUE(R(11).uniform());  // 4 * (tid.x / 32), as nvcc writes it
  EXPECT_TRUE(R(12).varying());
}

TEST_F(AnalysisTest, LowBitsThatDifferInOneOfTwoWritesDiffer) {
  Analyse(
      "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 3; mov.u32 %r3, 0;\n"
      "L: and.b32 %r4, %r2, 0x1ffffffc; shr.u32 %r2, %r1, 1; add.s32 %r3, %r3, 1;\n"
      "setp.lt.s32 %p1, %r3, 9; @%p1 bra L; ret;");
  EXPECT_TRUE(R(4).varying());
}

TEST_F(AnalysisTest, WhatMadAddsHasNoPartInItsProduct) {
  // tid.y * width + tid.x; the width is a parameter.
  Analyse(
      "ld.param.u64 %rd1, [out]; cvt.u32.u64 %r4, %rd1; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;\n"
      "mad.lo.s32 %r5, %r2, %r4, %r1; ret;",
      {16, false, true});
  EXPECT_TRUE(R(5).rows());
  EXPECT_EQ(R(5).stride, 1);
}

TEST_F(AnalysisTest, AUniformLoopNeedsNoMask) {
  Analyse("mov.u32 %r1, 0;\nL: add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, 100; @%p1 bra L; ret;");
  EXPECT_TRUE(R(1).uniform());
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    EXPECT_FALSE(lanes_->divergent(b));
    EXPECT_TRUE(lanes_->reconvergence().pending(b).empty());
  }
}

TEST_F(AnalysisTest, AWarpBarrierThatAllReachTogetherNeedsNoMask) {
  Analyse(
      "mov.u32 %r1, 0;\nL: bar.warp.sync -1; add.s32 %r1, %r1, 1;\n"
      "setp.lt.s32 %p1, %r1, 100; @%p1 bra L; ret;");
  EXPECT_TRUE(R(1).uniform());
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    EXPECT_TRUE(lanes_->reconvergence().pending(b).empty());
  }
}

TEST_F(AnalysisTest, LanesMayWaitAtAWarpBarrierWhileOthersRun) {
  Analyse(
      "mov.u32 %r3, %tid.x; setp.lt.s32 %p1, %r3, 5; @%p1 bra THEN;\n"
      "bar.warp.sync -1; bra JOIN;\nTHEN: bar.warp.sync -1;\nJOIN: mov.u32 %r2, 3; ret;");
  std::vector<std::uint32_t> barriers;
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    if (flow_.blocks[b].is_warp_barrier) barriers.push_back(b);
  }
  ASSERT_EQ(barriers.size(), 2U);
  // Whichever is passed, lanes may be at the other one.
  const Reconvergence& reconvergence = lanes_->reconvergence();
  const bool first = reconvergence.OtherWarpBarriers(barriers[0]) == std::vector{barriers[1]};
  const bool second = reconvergence.OtherWarpBarriers(barriers[1]) == std::vector{barriers[0]};
  EXPECT_TRUE(first || second);
  EXPECT_TRUE(R(2).uniform());
}

TEST_F(AnalysisTest, WhatLanesMissWhileTheyWaitVaries) {
  // %r1 counts the rounds of each lane and is read behind the loop; %r2 is not.
  Analyse(
      "mov.u32 %r3, %tid.x; mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
      "L: add.s32 %r1, %r1, 1; mov.u32 %r2, 7; setp.lt.s32 %p1, %r1, %r3; @%p1 bra L;\n"
      "ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r1; ret;");
  EXPECT_TRUE(R(1).varying());
  EXPECT_TRUE(R(2).uniform());
}

TEST_F(AnalysisTest, BothSidesOfABranchReconverge) {
  Analyse(
      "mov.u32 %r3, %tid.x; setp.lt.s32 %p1, %r3, 5; @%p1 bra THEN;\n"
      "mov.u32 %r1, 1; bra JOIN;\nTHEN: mov.u32 %r1, 2;\nJOIN: mov.u32 %r2, 3; ret;");
  ASSERT_TRUE(lanes_->divergent(0));
  // The join comes last, and nobody waits while it runs.
  std::uint32_t join = 0;
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    if (flow_.blocks[b].terminator == Terminator::kExit && flow_.blocks[b].branch != kNoIndex) {
      join = b;
    }
  }
  EXPECT_TRUE(lanes_->reconvergence().pending(join).empty());
  EXPECT_TRUE(R(2).uniform());
}

TEST_F(AnalysisTest, BlocksOfALoopAreContiguous) {
  // The exit is reached from the middle, and a block of the loop comes behind it in the text.
  Analyse(
      "HEAD: setp.eq.s32 %p1, %r1, 0; @%p1 bra TAIL;\nsetp.eq.s32 %p2, %r2, 0; @%p2 bra OUT;\n"
      "bra HEAD;\nOUT: ret;\nTAIL: add.s32 %r1, %r1, 1; bra HEAD;");
  const std::uint32_t end = flow_.blocks[0].loop_end;
  EXPECT_EQ(flow_.blocks[0].loop, 0U);
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    EXPECT_EQ(flow_.blocks[b].loop == 0U, b < end) << b;
  }
}

TEST_F(AnalysisTest, OnlyLoopsThatWaitForOthersSpin) {
  Analyse(
      "ld.param.u64 %rd1, [out];\n"
      "SPIN: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0; @%p1 bra SPIN;\n"
      "COUNT: atom.global.add.u32 %r2, [%rd1], 1; add.s32 %r3, %r3, 1;\n"
      "setp.lt.s32 %p2, %r3, 10; @%p2 bra COUNT; ret;");
  unsigned spinning = 0;
  unsigned loops = 0;
  for (std::uint32_t b = 0; b < flow_.blocks.size(); ++b) {
    loops += flow_.blocks[b].loop == b ? 1 : 0;
    spinning += flow_.blocks[b].spins ? 1 : 0;
  }
  EXPECT_EQ(loops, 2U);
  EXPECT_EQ(spinning, 1U);
}

TEST_F(AnalysisTest, AWarpIsOnOneSideOfAMultipleOfItsSize) {
  Analyse(
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; setp.gt.u32 %p1, %r1, 31;\n"
      "setp.lt.u32 %p2, %r1, 64; setp.lt.u32 %p3, %r1, %r2; setp.lt.u32 %p4, %r1, 48;\n"
      "setp.gt.u32 %p5, %r1, 32; setp.eq.u32 %p6, %r1, 32; ret;");
  const auto p = [&](unsigned number) { return lanes_->shape(40 + number); };
  for (const unsigned uniform : {1, 2, 3}) EXPECT_TRUE(p(uniform).uniform()) << uniform;
  for (const unsigned varying : {4, 5, 6}) EXPECT_FALSE(p(varying).uniform()) << varying;
}

TEST_F(AnalysisTest, AllLanesMeetAgainUnlessSomeHaveEnded) {
  const std::string branch =
      "mov.u32 %r1, %laneid; setp.eq.u32 %p1, %r1, 3; @%p1 bra JOIN; mov.u32 %r2, 1;\n";
  Analyse(branch + "JOIN: mov.u32 %r3, 2; ret;");
  EXPECT_FALSE(lanes_->reconvergence().has_all_lanes(1));
  EXPECT_TRUE(lanes_->reconvergence().has_all_lanes(2));
  Analyse(branch + "ret; JOIN: mov.u32 %r3, 2; ret;");
  EXPECT_FALSE(lanes_->reconvergence().has_all_lanes(2));
  Analyse("mov.u32 %r1, %laneid; setp.eq.u32 %p1, %r1, 3; @%p1 exit; mov.u32 %r2, 1; ret;");
  EXPECT_FALSE(lanes_->reconvergence().has_all_lanes(1));
}

TEST_F(AnalysisTest, StridedLoopsStepThroughMemory) {
  const auto loop = [](const std::string& load, const std::string& step) {
    return "mov.u32 %r1, %tid.x; mov.u32 %r2, %nctaid.x; ld.param.u64 %rd1, [out];\n"
           "LOOP: mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;\n" +
           load + " add.u32 %r1, %r1, " + step + "; setp.lt.u32 %p1, %r1, 999; @%p1 bra LOOP; ret;";
  };
  const auto stride = [&] { return StrideOfLoop(module_.functions[0], flow_, *lanes_, 1); };
  Analyse(loop("ld.global.u32 %r3, [%rd3];", "%r2"));
  EXPECT_EQ(stride(), 2U);
  Analyse(loop("ld.global.u32 %r3, [%rd3];", "32"));
  EXPECT_EQ(stride(), kNoIndex);
  Analyse(loop("ld.shared.u32 %r3, [%r1];", "%r2"));
  EXPECT_EQ(stride(), kNoIndex);
  Analyse(loop("ld.global.u32 %r3, [%rd3]; bar.sync 0;", "%r2"));
  EXPECT_EQ(stride(), kNoIndex);
}

TEST_F(AnalysisTest, PartsOfATileAreReadFromOnePointer) {
  const auto count = [&] {
    std::size_t loads = 0;
    FindTileLoads(module_.functions[0], flow_).ForEach([&](std::size_t) { ++loads; });
    return loads;
  };
  const std::string begin =
      "ld.param.u64 %rd1, [out]; cvta.to.global.u64 %rd2, %rd1; mov.u32 %r1, %tid.x;\n"
      "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; ld.global.u32 %r2, [%rd4];\n";
  Analyse(begin + "ld.global.u32 %r3, [%rd4+1024]; ret;");
  EXPECT_EQ(count(), 2U);
  Analyse(begin + "ld.global.u32 %r3, [%rd4+4]; ret;");
  EXPECT_EQ(count(), 0U);
}

}  // namespace
}  // namespace torpor::ptx
