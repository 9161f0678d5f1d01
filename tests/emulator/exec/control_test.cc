#include <array>
#include <atomic>
#include <numeric>
#include <sstream>
#include <thread>

#include "tests/emulator/exec/kernel_test.h"
#include "tests/emulator/exec/kernels/per_thread.h"

namespace torpor::emulator {
namespace {

class ControlTest : public KernelTest {
 protected:
  void SetUp() override { Load("control"); }
};

TEST_F(ControlTest, DivergentNestedLoopsMatchTheHost) {
  constexpr int kCount = 5000;
  DeviceArray<int> in(memory_, kCount);
  DeviceArray<int> out(memory_, kCount);
  for (int i = 0; i < kCount; ++i) in[i] = i * 37 + (i >> 3);
  for (const unsigned block : {32U, 50U, 128U, 1024U}) {
    MustRun("diverge", {(kCount + block - 1) / block, 1, 1}, {block, 1, 1}, in.data(), out.data(),
            kCount);
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(out[i], Diverge(in[i])) << i << " of " << block;
  }
}

TEST_F(ControlTest, LoopsOfDifferentLengthsMatchTheHost) {
  constexpr int kCount = 1000;
  DeviceArray<int> in(memory_, kCount);
  DeviceArray<int> out(memory_, kCount);
  std::iota(in.data(), in.data() + kCount, 0);
  MustRun("collatz", {8, 1, 1}, {128, 1, 1}, in.data(), out.data(), kCount);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(out[i], Collatz(i)) << i;
}

// So many blocks that the compiler leaves registers in memory.
TEST_F(ControlTest, ManyThousandBranchesMatchTheHost) {
  constexpr std::uint32_t kBranches = 6000;
  std::ostringstream body;
  body << "mov.u32 %r1, %tid.x;\n";
  for (std::uint32_t i = 0; i < kBranches; ++i) {
    body << "and.b32 %r3, %r1, " << (1U << (i % 5)) << ";\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra L"
         << i << ";\nmad.lo.u32 %r1, %r1, 5, " << i << ";\nL" << i << ":\nxor.b32 %r1, %r1, " << i
         << ";\n";
  }
  const std::vector<std::uint32_t> results = RunWarp(body.str());
  for (std::uint32_t lane = 0; lane < results.size(); ++lane) {
    std::uint32_t expected = lane;
    for (std::uint32_t i = 0; i < kBranches; ++i) {
      if ((expected & (1U << (i % 5))) != 0) expected = expected * 5 + i;
      expected ^= i;
    }
    ASSERT_EQ(results[lane], expected) << lane;
  }
}

TEST_F(ControlTest, BarriersInLoopsOrderSharedMemory) {
  constexpr unsigned kBlocks = 20;
  DeviceArray<float> in(memory_, kBlocks * std::size_t{256});
  DeviceArray<float> out(memory_, kBlocks);
  for (unsigned i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 13);
  MustRun("barrier_loop", {kBlocks, 1, 1}, {256, 1, 1}, in.data(), out.data());
  for (unsigned b = 0; b < kBlocks; ++b) {
    const float* const block = &in[b * std::size_t{256}];
    EXPECT_EQ(out[b], std::accumulate(block, block + 256, 0.0F));
  }
}

TEST_F(ControlTest, WarpsThatEndedDoNotHoldUpABarrier) {
  DeviceArray<int> out(memory_, 40);
  MustRun("early_exit", {4, 1, 1}, {256, 1, 1}, out.data());
  for (int i = 0; i < 40; ++i) EXPECT_EQ(out[i], 64 * (i % 10 + 1));
}

TEST_F(ControlTest, BarriersReducePredicates) {
  DeviceArray<int> in(memory_, 96);
  DeviceArray<int> out(memory_, 96);
  std::iota(in.data(), in.data() + 96, 0);
  MustRun("barrier_reductions", {1, 1, 1}, {96, 1, 1}, in.data(), out.data());
  for (int i = 0; i < 96; ++i) EXPECT_EQ(out[i], 48 * 4 + 2 + 1);
  MustRun("barrier_reductions", {1, 1, 1}, {32, 1, 1}, in.data(), out.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], 16 * 4 + 2);
}

TEST_F(ControlTest, NamedBarriersPairWarps) {
  DeviceArray<int> out(memory_, 32);
  MustRun("named_barriers", {1, 1, 1}, {128, 1, 1}, out.data());
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], (31 - lane) * 500 + 10);
}

TEST_F(ControlTest, ALockWithinAWarpMakesProgress) {
  DeviceArray<int> mutex(memory_, 1);
  DeviceArray<int> count(memory_, 1);
  MustRun("lock", {6, 1, 1}, {96, 1, 1}, mutex.data(), count.data());
  EXPECT_EQ(count[0], 6 * 96);
}

TEST_F(ControlTest, BlocksMayWaitForEarlierOnes) {
  constexpr unsigned kBlocks = 50;
  DeviceArray<int> flags(memory_, kBlocks);
  DeviceArray<int> out(memory_, kBlocks);
  MustRun("chain", {kBlocks, 1, 1}, {32, 1, 1}, flags.data(), out.data());
  for (unsigned b = 0; b < kBlocks; ++b) EXPECT_EQ(out[b], static_cast<int>(2 * b + 1));
}

TEST_F(ControlTest, AThreadMayWaitForTheHostWhileItsBlockWaits) {
  DeviceArray<int> asked(memory_, 1);
  DeviceArray<int> answer(memory_, 1);
  DeviceArray<int> out(memory_, 64);
  std::thread host([&] {
    while (std::atomic_ref(asked[0]).load() == 0) std::this_thread::yield();
    std::atomic_ref(answer[0]).store(7);
  });
  MustRun("outside", {1, 1, 1}, {64, 1, 1}, asked.data(), answer.data(), out.data());
  host.join();
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], 7 + i);
}

TEST_F(ControlTest, WarpsOfABlockMayWaitForEachOther) {
  DeviceArray<int> out(memory_, 12);
  MustRun("ring", {1, 1, 1}, {128, 1, 1}, out.data());
  for (int i = 0; i < 12; ++i) EXPECT_EQ(out[i], i % 4 + 1);
}

TEST_F(ControlTest, CooperativeGridsSynchronise) {
  constexpr int kBlocks = 24;
  constexpr int kRounds = 5;
  DeviceArray<int> cells(memory_, std::size_t{2} * kBlocks);
  for (int b = 0; b < kBlocks; ++b) cells[b] = 100 * b;
  LaunchConfig config;
  config.grid = {kBlocks, 1, 1};
  config.block = {64, 1, 1};
  config.cooperative = true;
  const auto result = Launch("cooperative", config, cells.data(), kRounds);
  ASSERT_TRUE(result) << result.failure().message;
  for (int b = 0; b < kBlocks; ++b) {
    EXPECT_EQ(cells[kRounds % 2 * kBlocks + b], (b + kRounds) % kBlocks * 100 + kRounds) << b;
  }
}

TEST_F(ControlTest, AFailureEndsBlocksThatWait) {
  DeviceArray<int> waits(memory_, 1);
  DeviceArray<int> never(memory_, 1);
  LaunchConfig config;
  config.grid = {2, 1, 1};
  const auto result = Launch("fails_beside_a_waiter", config, waits.data(), never.data());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().code, ExecError::kTrap);
  EXPECT_NE(result.failure().message.find("block (0,0,0)"), std::string::npos)
      << result.failure().message;
}

TEST_F(ControlTest, AFailedBlockLeavesNothingAtItsBarriers) {
  DeviceArray<int> in(memory_, 32);
  DeviceArray<int> out(memory_, 32);
  std::iota(in.data(), in.data() + 32, 0);
  MustFail(ExecError::kTrap, "fails_before_a_barrier", {64, 1, 1});
  MustRun("barrier_reductions", {1, 1, 1}, {32, 1, 1}, in.data(), out.data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[i], 16 * 4 + 2);
}

TEST_F(ControlTest, ATrapNamesItsThread) {
  DeviceArray<int> out(memory_, 64);
  LaunchConfig config;
  config.block = {64, 1, 1};
  MustRun("fails_assert_like", {1, 1, 1}, {64, 1, 1}, out.data(), 64);
  const auto result = Launch("fails_assert_like", config, out.data(), 45);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().code, ExecError::kTrap);
  EXPECT_NE(result.failure().message.find("thread (45,0,0)"), std::string::npos)
      << result.failure().message;
}

}  // namespace
}  // namespace torpor::emulator
