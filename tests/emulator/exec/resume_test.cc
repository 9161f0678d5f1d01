// Warps that leave their code where they wait, and go on there.
#include <string>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class ResumeTest : public KernelTest {
 protected:
  // out[tid] of one block.
  std::vector<std::uint32_t> RunBlock(const std::string& body, std::uint32_t threads) {
    LoadBody(body);
    DeviceArray<std::uint32_t> out(memory_, threads);
    MustRun("k", {1, 1, 1}, {threads, 1, 1}, out.data());
    return {out.data(), out.data() + threads};
  }
};

// %r1 sums what the block's predicates say, %r5 = round, %r6 differs in every thread and round.
TEST_F(ResumeTest, RegistersOutliveABarrierInALoop) {
  constexpr std::uint32_t kThreads = 96;
  const auto out = RunBlock(
      "mov.u32 %r3, %tid.x; mov.u32 %r1, 0; mov.u32 %r5, 0; mul.lo.u32 %r6, %r3, %r3;\n"
      "LOOP: and.b32 %r7, %r6, 1; setp.eq.u32 %p1, %r7, 1;\n"
      "bar.red.popc.u32 %r8, 0, %p1; add.u32 %r1, %r1, %r8;\n"
      "mad.lo.u32 %r6, %r6, 5, %r5; add.u32 %r5, %r5, 1;\n"
      "setp.lt.u32 %p2, %r5, 7; @%p2 bra LOOP;\n"
      "add.u32 %r1, %r1, %r6;",
      kThreads);
  std::vector<std::uint32_t> value(kThreads);
  for (std::uint32_t t = 0; t < kThreads; ++t) value[t] = t * t;
  std::uint32_t sum = 0;
  for (std::uint32_t round = 0; round < 7; ++round) {
    for (std::uint32_t& v : value) {
      sum += v & 1;
      v = v * 5 + round;
    }
  }
  for (std::uint32_t t = 0; t < kThreads; ++t) EXPECT_EQ(out[t], sum + value[t]) << t;
}

// The lanes of a half wait at the barrier while the others have left it.
TEST_F(ResumeTest, LanesThatEndedStayEnded) {
  const auto out = RunBlock(
      "mov.u32 %r3, %tid.x; and.b32 %r4, %r3, 16; setp.ne.u32 %p1, %r4, 0; @%p1 exit;\n"
      "bar.sync 0; bar.sync 0; add.u32 %r1, %r3, 100;",
      64);
  for (std::uint32_t t = 0; t < 64; ++t) EXPECT_EQ(out[t], (t & 16) != 0 ? 0 : t + 100) << t;
}

TEST_F(ResumeTest, AGuardedBarrierKeepsTheWarpsThatSkipIt) {
  const auto out = RunBlock(
      "mov.u32 %r3, %tid.x; setp.lt.u32 %p1, %r3, 64; mul.lo.u32 %r4, %r3, 3;\n"
      "@%p1 bar.sync 1, 64; @%p1 add.u32 %r4, %r4, 1; @!%p1 add.u32 %r4, %r4, 2;\n"
      "bar.sync 0; mov.u32 %r1, %r4;",
      96);
  for (std::uint32_t t = 0; t < 96; ++t) EXPECT_EQ(out[t], 3 * t + (t < 64 ? 1 : 2)) << t;
}

// Steps of 4096 elements, so that the warps take turns; threads go round a different number of
// times.
TEST_F(ResumeTest, WarpsTakeTurnsInStridedLoops) {
  constexpr std::uint32_t kThreads = 128;
  constexpr std::uint32_t kStep = 4096;
  constexpr std::uint32_t kSize = 20 * kStep + 50;
  LoadText(std::string(kPtxHeader) + R"(
.visible .entry sum(.param .u64 in, .param .u64 out, .param .u32 n, .param .u32 step)
{
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n]; ld.param.u32 %r2, [step];
mov.u32 %r3, %tid.x; mov.u32 %r4, 0; mov.u32 %r5, %r3;
LOOP: mul.wide.u32 %rd3, %r5, 4; add.u64 %rd4, %rd1, %rd3; ld.global.u32 %r6, [%rd4];
mad.lo.u32 %r4, %r4, 3, %r6; add.u32 %r5, %r5, %r2; setp.lt.u32 %p1, %r5, %r1; @%p1 bra LOOP;
mul.wide.u32 %rd5, %r3, 4; add.u64 %rd6, %rd2, %rd5; st.global.u32 [%rd6], %r4; ret;
})");
  DeviceArray<std::uint32_t> in(memory_, kSize);
  for (std::uint32_t i = 0; i < kSize; ++i) in[i] = i * 2654435761U;
  DeviceArray<std::uint32_t> out(memory_, kThreads);
  MustRun("sum", {1, 1, 1}, {kThreads, 1, 1}, in.data(), out.data(), kSize, kStep);
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    std::uint32_t sum = 0;
    for (std::uint32_t i = t; i < kSize; i += kStep) sum = sum * 3 + in[i];
    EXPECT_EQ(out[t], sum) << t;
  }
}

// Runs every block once, also where rows of blocks are run in bands; their number is no multiple.
TEST_F(ResumeTest, KernelsThatScatterRunEveryBlock) {
  LoadText(std::string(kPtxHeader) + R"(
.visible .entry mark(.param .u64 out)
{
.reg .b32 %r<9>; .reg .b64 %rd<9>;
ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y;
mov.u32 %r4, %ctaid.z; mov.u32 %r5, %nctaid.x; mov.u32 %r6, %nctaid.y;
mad.lo.u32 %r4, %r4, %r6, %r3; mad.lo.u32 %r4, %r4, %r5, %r2;
xor.b32 %r7, %r1, 5; shl.b32 %r4, %r4, 5; add.u32 %r4, %r4, %r7;
mul.wide.u32 %rd2, %r4, 4; add.u64 %rd3, %rd1, %rd2; ld.global.u32 %r8, [%rd3];
add.u32 %r8, %r8, %r4; st.global.u32 [%rd3], %r8; ret;
})");
  constexpr Dim3 kGrid = {5, 19, 3};
  DeviceArray<std::uint32_t> out(memory_, std::size_t{kGrid.x} * kGrid.y * kGrid.z * 32);
  MustRun("mark", kGrid, {32, 1, 1}, out.data());
  for (std::uint32_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], i);
}

// More blocks than there are cores wait for each other, three times, in two warps each.
TEST_F(ResumeTest, BlocksThatSpinForEachOtherRunSideBySide) {
  constexpr std::uint32_t kBlocks = 100;
  LoadText(std::string(kPtxHeader) + R"(
.visible .entry meet(.param .u64 counter, .param .u64 out)
{
.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;
ld.param.u64 %rd1, [counter]; ld.param.u64 %rd2, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %nctaid.x; mov.u32 %r4, 0; mov.u32 %r7, 0;
ROUND: add.u32 %r4, %r4, %r3; setp.ne.u32 %p1, %r1, 40; @%p1 bra JOIN;
atom.global.add.u32 %r5, [%rd1], 1;
SPIN: ld.volatile.global.u32 %r5, [%rd1]; setp.lt.u32 %p2, %r5, %r4; @%p2 bra SPIN;
JOIN: bar.sync 0; add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 3; @%p2 bra ROUND;
mad.lo.u32 %r6, %r2, 64, %r1; mul.wide.u32 %rd3, %r6, 4; add.u64 %rd4, %rd2, %rd3;
ld.volatile.global.u32 %r5, [%rd1]; st.global.u32 [%rd4], %r5; ret;
})");
  DeviceArray<std::uint32_t> counter(memory_, 1);
  DeviceArray<std::uint32_t> out(memory_, std::size_t{kBlocks} * 64);
  MustRun("meet", {kBlocks, 1, 1}, {64, 1, 1}, counter.data(), out.data());
  for (std::uint32_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], 3 * kBlocks) << i;
}

}  // namespace
}  // namespace torpor::emulator
