// Shuffles, votes, matches and reductions whose members are in different branches.
#include <string>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

constexpr std::uint32_t kLanes = 32;

class CollectiveTest : public KernelTest {
 protected:
  // out[lane] of one warp; %r3 is the lane.
  std::vector<std::uint32_t> RunWarp(const std::string& body) {
    return KernelTest::RunWarp("mov.u32 %r3, %laneid;\n" + body);
  }
};

TEST_F(CollectiveTest, ShufflesInTwoBranchesExchange) {
  const auto out = RunWarp(
      "setp.lt.u32 %p1, %r3, 16; @%p1 bra LOW;\n"
      "add.u32 %r4, %r3, 100; shfl.sync.bfly.b32 %r1, %r4, 16, 31, -1; bra JOIN;\n"
      "LOW: mul.lo.u32 %r5, %r3, 3; shfl.sync.bfly.b32 %r1, %r5, 16, 31, -1;\nJOIN:");
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(out[lane], lane < 16 ? lane + 16 + 100 : (lane - 16) * 3) << lane;
  }
}

// The next exchange of one branch must not reach the other branch's last one.
TEST_F(CollectiveTest, ExchangesDoNotOvertakeEachOther) {
  const auto out = RunWarp(
      "mov.u32 %r1, %r3; setp.lt.u32 %p1, %r3, 16; @%p1 bra LOW;\n"
      "shfl.sync.bfly.b32 %r4, %r1, 16, 31, -1; mad.lo.u32 %r1, %r1, 3, %r4;\n"
      "shfl.sync.bfly.b32 %r4, %r1, 16, 31, -1; mad.lo.u32 %r1, %r1, 5, %r4; bra JOIN;\n"
      "LOW: shfl.sync.bfly.b32 %r4, %r1, 16, 31, -1; mad.lo.u32 %r1, %r1, 7, %r4;\n"
      "shfl.sync.bfly.b32 %r4, %r1, 1, 31, 0xffff; add.u32 %r1, %r1, %r4;\n"
      "shfl.sync.bfly.b32 %r4, %r1, 16, 31, -1; mad.lo.u32 %r1, %r1, 11, %r4;\nJOIN:");
  std::vector<std::uint32_t> value(kLanes);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    value[lane] = lane * (lane < 16 ? 7 : 3) + (lane ^ 16);
  }
  for (std::uint32_t lane = 0; lane < 16; lane += 2) {
    value[lane] = value[lane + 1] = value[lane] + value[lane + 1];
  }
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(out[lane], value[lane] * (lane < 16 ? 11 : 5) + value[lane ^ 16]) << lane;
  }
}

TEST_F(CollectiveTest, VotesInThreeBranchesSeeAllMembers) {
  const auto branch = [](const std::string& name, const std::string& bit) {
    return name + ": and.b32 %r5, %r3, " + bit +
           "; setp.ne.u32 %p3, %r5, 0; vote.sync.ballot.b32 %r1, %p3, -1; bra JOIN;\n";
  };
  const auto out =
      RunWarp("setp.lt.u32 %p1, %r3, 8; setp.lt.u32 %p2, %r3, 20; @%p1 bra ONE; @%p2 bra TWO;\n" +
              branch("THREE", "4") + branch("ONE", "1") + branch("TWO", "2") + "JOIN:");
  std::uint32_t expected = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t bit = lane < 8 ? 1 : lane < 20 ? 2 : 4;
    if ((lane & bit) != 0) expected |= 1U << lane;
  }
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) EXPECT_EQ(out[lane], expected) << lane;
}

TEST_F(CollectiveTest, MatchesAndReductionsInTwoBranchesSeeAllMembers) {
  const auto out = RunWarp(
      "and.b32 %r4, %r3, 3; setp.lt.u32 %p1, %r3, 10; @%p1 bra LOW;\n"
      "match.any.sync.b32 %r5, %r4, -1; redux.sync.add.s32 %r6, %r3, -1; bra JOIN;\n"
      "LOW: match.any.sync.b32 %r5, %r4, -1; mov.u32 %r7, 1000; redux.sync.add.s32 %r6, %r7, -1;\n"
      "JOIN: add.u32 %r1, %r5, %r6;");
  const std::uint32_t sum = 10 * 1000 + (10 + 31) * 22 / 2;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(out[lane], (0x11111111U << (lane & 3)) + sum) << lane;
  }
}

// Lane l takes part l % 4 + 1 times; then it waits for all.
TEST_F(CollectiveTest, LanesThatLeaveALoopAreNotForgotten) {
  const auto out = RunWarp(
      "mov.u32 %r1, 0; and.b32 %r4, %r3, 3; mov.u32 %r5, 0;\n"
      "LOOP: setp.ge.u32 %p2, %r4, %r5; vote.sync.ballot.b32 %r6, %p2, -1;\n"
      "popc.b32 %r6, %r6; add.u32 %r1, %r1, %r6; add.u32 %r5, %r5, 1;\n"
      "setp.le.u32 %p1, %r5, %r4; @%p1 bra LOOP;\n"
      "REST: setp.gt.u32 %p1, %r5, 3; @%p1 bra DONE;\n"
      "setp.ge.u32 %p2, %r4, %r5; vote.sync.ballot.b32 %r6, %p2, -1;\n"
      "popc.b32 %r6, %r6; add.u32 %r1, %r1, %r6; add.u32 %r5, %r5, 1; bra REST;\nDONE:");
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(out[lane], 32U + 24 + 16 + 8) << lane;
  }
}

TEST_F(CollectiveTest, LanesThatHaveEndedAreNotWaitedFor) {
  const auto out = RunWarp(
      "setp.lt.u32 %p1, %r3, 4; @%p1 exit; setp.lt.u32 %p1, %r3, 20; @%p1 bra LOW;\n"
      "add.u32 %r4, %r3, 1; shfl.sync.idx.b32 %r1, %r4, 10, 31, -1; bra JOIN;\n"
      "LOW: setp.lt.u32 %p2, %r3, 8; @%p2 exit;\n"
      "add.u32 %r4, %r3, 2; shfl.sync.idx.b32 %r1, %r4, 30, 31, -1;\nJOIN:");
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(out[lane], lane < 8 ? 0U : lane < 20 ? 31U : 12U) << lane;
  }
}

// Each branch has a mask of its own.
TEST_F(CollectiveTest, GroupsDoNotWaitForOthers) {
  const auto out = RunWarp(
      "setp.lt.u32 %p1, %r3, 12; @%p1 bra LOW;\n"
      "mov.u32 %r5, 0xfffff000; redux.sync.max.u32 %r1, %r3, %r5; bra JOIN;\n"
      "LOW: mov.u32 %r5, 0xfff; redux.sync.max.u32 %r1, %r3, %r5;\n"
      "shfl.sync.up.b32 %r6, %r3, 1, 0, %r5; add.u32 %r1, %r1, %r6;\nJOIN:");
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t before = lane == 0 ? 0 : lane - 1;
    EXPECT_EQ(out[lane], lane < 12 ? 11 + before : 31U) << lane;
  }
}

// Lanes wait for others of their warp, which let another warp run.
TEST_F(CollectiveTest, WhatLanesHaveBroughtIsKeptWhileOthersWait) {
  LoadBody(
      ".shared .align 4 .b32 flag; mov.u32 %r3, %tid.x; mov.u32 %r4, 0; st.shared.u32 [flag], "
      "%r4;\n"
      "bar.sync 0; setp.ge.u32 %p1, %r3, 32; @%p1 bra OTHER;\n"
      "and.b32 %r8, %r3, 16; setp.ne.u32 %p1, %r8, 0; @%p1 bra SPIN;\n"
      "mul.lo.u32 %r4, %r3, 3; shfl.sync.bfly.b32 %r1, %r4, 16, 31, -1; bra JOIN;\n"
      "SPIN: ld.volatile.shared.u32 %r5, [flag]; setp.eq.u32 %p2, %r5, 0; @%p2 bra SPIN;\n"
      "shfl.sync.bfly.b32 %r1, %r3, 16, 31, -1; bra JOIN;\n"
      "OTHER: mov.u32 %r1, 7; st.volatile.shared.u32 [flag], %r1;\nJOIN:");
  DeviceArray<std::uint32_t> out(memory_, 64);
  MustRun("k", {1, 1, 1}, {64, 1, 1}, out.data());
  for (std::uint32_t t = 0; t < 64; ++t) {
    EXPECT_EQ(out[t], t >= 32 ? 7 : (t & 16) != 0 ? (t ^ 16) * 3 : (t ^ 16)) << t;
  }
}

}  // namespace
}  // namespace torpor::emulator
