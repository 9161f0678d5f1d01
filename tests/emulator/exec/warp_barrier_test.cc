// bar.warp.sync, whose members may come to it in different branches and at different places.
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

using WarpBarrierTest = KernelTest;

// %rd4 is the address of the lane's word of s, %r3 the lane.
constexpr char kShared[] =
    ".shared .align 4 .b32 s[64];\nmov.u32 %r3, %laneid; mov.u64 %rd5, s;\n"
    "mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd5, %rd4;\n";

TEST_F(WarpBarrierTest, WarpBarriersInDifferentBranchesMeet) {
  const auto out = RunWarp(
      std::string(kShared) +
      "setp.lt.u32 %p1, %r3, 16; @!%p1 bra ELSE;\n"
      "mov.u32 %r4, 1; st.shared.u32 [%rd4], %r4; bar.warp.sync -1; ld.shared.u32 %r1, [%rd4+64];\n"
      "bra JOIN;\n"
      "ELSE: mov.u32 %r4, 2; st.shared.u32 [%rd4], %r4; bar.warp.sync -1;\n"
      "ld.shared.u32 %r1, [%rd4-64];\n"
      "JOIN: shfl.sync.bfly.b32 %r5, %r1, 16, 31, -1; mad.lo.u32 %r1, %r5, 10, %r1;");
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane < 16 ? 12U : 21U) << lane;
}

// Three branches, each with a loop, exchange numbers with the next lane.
TEST_F(WarpBarrierTest, WarpBarriersKeepThreeBranchesInStep) {
  constexpr unsigned kRounds = 5;
  const auto arm = [](const std::string& name, unsigned factor) {
    return name + ": mov.u32 %r6, 0;\n" + name +
           "_LOOP: st.shared.u32 [%rd4], %r1; bar.warp.sync -1; ld.shared.u32 %r7, [%rd6];\n"
           "bar.warp.sync -1; mad.lo.u32 %r1, %r1, " +
           std::to_string(factor) +
           ", %r7;\n"
           "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 5; @%p1 bra " +
           name + "_LOOP;\nbra JOIN;\n";
  };
  const auto out = RunWarp(std::string(kShared) +
                           "add.u32 %r4, %r3, 1; and.b32 %r4, %r4, 31; mul.wide.u32 %rd6, %r4, 4;\n"
                           "add.u64 %rd6, %rd5, %rd6; mov.u32 %r1, %r3; rem.u32 %r5, %r3, 3;\n"
                           "setp.eq.u32 %p2, %r5, 1; setp.eq.u32 %p3, %r5, 2;\n"
                           "@%p2 bra B; @%p3 bra C;\n" +
                           arm("A", 3) + arm("B", 5) + arm("C", 7) + "JOIN:");
  std::vector<std::uint32_t> expected(32);
  for (unsigned lane = 0; lane < 32; ++lane) expected[lane] = lane;
  for (unsigned round = 0; round < kRounds; ++round) {
    const std::vector<std::uint32_t> before = expected;
    for (unsigned lane = 0; lane < 32; ++lane) {
      expected[lane] = before[lane] * (3 + lane % 3 * 2) + before[(lane + 1) % 32];
    }
  }
  EXPECT_EQ(out, expected);
}

// Random branches and loops, in which all lanes pass as many barriers: v = v * factor + 1, then
// the next lane's v is added.
class ExchangeProgram {
 public:
  ExchangeProgram(unsigned seed, unsigned exchanges) : random_(seed), factors_(32) {
    Emit(~0U, exchanges, 2);
  }

  const std::string& text() const { return text_; }

  std::vector<std::uint32_t> Expected() const {
    std::vector<std::uint32_t> values(32);
    for (unsigned lane = 0; lane < 32; ++lane) values[lane] = lane;
    for (std::size_t step = 0; step < factors_[0].size(); ++step) {
      for (unsigned lane = 0; lane < 32; ++lane) {
        values[lane] = values[lane] * factors_[lane][step] + 1;
      }
      const std::vector<std::uint32_t> before = values;
      for (unsigned lane = 0; lane < 32; ++lane) values[lane] += before[(lane + 1) % 32];
    }
    return values;
  }

 private:
  std::uint32_t Draw() { return static_cast<std::uint32_t>(random_()); }

  void Emit(std::uint32_t lanes, unsigned exchanges, unsigned depth) {
    while (exchanges > 0) {
      const unsigned part = 1 + Draw() % exchanges;
      exchanges -= part;
      const unsigned kind = depth == 0 ? 0 : Draw() % 3;
      if (kind == 2) {
        EmitBranch(lanes, part, depth);
      } else if (kind == 1 && part % 2 == 0) {
        EmitLoop(lanes, part / 2, depth);
      } else {
        for (unsigned i = 0; i < part; ++i) EmitExchange(lanes);
      }
    }
  }

  void EmitExchange(std::uint32_t lanes) {
    const std::uint32_t factor = Draw() | 1;
    text_ += "mad.lo.u32 %r1, %r1, " + std::to_string(factor) +
             ", 1; st.shared.u32 [%rd4], %r1; bar.warp.sync -1; ld.shared.u32 %r7, [%rd6];\n"
             "bar.warp.sync -1; add.u32 %r1, %r1, %r7;\n";
    for (unsigned lane = 0; lane < 32; ++lane) {
      if ((lanes >> lane & 1) != 0) factors_[lane].push_back(factor);
    }
  }

  void EmitBranch(std::uint32_t lanes, unsigned exchanges, unsigned depth) {
    const std::uint32_t taken = Draw();
    const std::string label = std::to_string(labels_++);
    text_ += "mov.u32 %r8, " + std::to_string(taken) +
             "; shr.u32 %r8, %r8, %r3; and.b32 %r8, %r8, 1;\n"
             "setp.ne.u32 %p1, %r8, 0; @%p1 bra TAKEN_" +
             label + ";\n";
    Emit(lanes & ~taken, exchanges, depth - 1);
    text_ += "bra JOIN_" + label + ";\nTAKEN_" + label + ":\n";
    Emit(lanes & taken, exchanges, depth - 1);
    text_ += "JOIN_" + label + ":\n";
  }

  // Two rounds.
  void EmitLoop(std::uint32_t lanes, unsigned exchanges, unsigned depth) {
    const std::string counter = "%r" + std::to_string(10 + depth);
    const std::string label = "LOOP_" + std::to_string(labels_++);
    std::vector<std::size_t> begin;
    for (const auto& factors : factors_) begin.push_back(factors.size());
    text_ += "mov.u32 " + counter + ", 0;\n" + label + ":\n";
    Emit(lanes, exchanges, depth - 1);
    text_ += "add.u32 " + counter + ", " + counter + ", 1; setp.lt.u32 %p1, " + counter +
             ", 2; @%p1 bra " + label + ";\n";
    for (unsigned lane = 0; lane < 32; ++lane) {
      const std::vector<std::uint32_t> round(
          factors_[lane].begin() + static_cast<std::ptrdiff_t>(begin[lane]), factors_[lane].end());
      factors_[lane].insert(factors_[lane].end(), round.begin(), round.end());
    }
  }

  std::mt19937 random_;
  std::string text_;
  unsigned labels_ = 0;
  std::vector<std::vector<std::uint32_t>> factors_;  // of each lane
};

TEST_F(WarpBarrierTest, WarpBarriersInAnyBranchesMeet) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const ExchangeProgram program(seed, 5);
    const auto out =
        RunWarp(std::string(kShared) +
                "add.u32 %r4, %r3, 1; and.b32 %r4, %r4, 31;\n"
                "mul.wide.u32 %rd6, %r4, 4; add.u64 %rd6, %rd5, %rd6;\n"
                "mov.u32 %r1, %r3;\n" +
                program.text() + "shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1; sub.u32 %r1, %r1, %r5;");
    const std::vector<std::uint32_t> expected = program.Expected();
    for (unsigned lane = 0; lane < 32; ++lane) {
      ASSERT_EQ(out[lane], expected[lane] - expected[lane ^ 1]) << seed << " " << lane;
    }
  }
}

// The others must not run ahead of the join: the shuffle behind it wants all.
TEST_F(WarpBarrierTest, AWarpBarrierWaitsForItsMembersOnly) {
  for (const std::string mask : {"0x0000ffff", "%r8"}) {
    const auto out =
        RunWarp(std::string(kShared) +
                "mov.u32 %r1, %r3; and.b32 %r8, %r3, 8; mov.u32 %r9, 255; shl.b32 %r8, %r9, %r8;\n"
                "setp.ge.u32 %p1, %r3, 16; @%p1 bra JOIN;\n"
                "st.shared.u32 [%rd4], %r3; bar.warp.sync " +
                mask +
                ";\n"
                "xor.b32 %r4, %r3, 7; mul.wide.u32 %rd6, %r4, 4; add.u64 %rd6, %rd5, %rd6;\n"
                "ld.shared.u32 %r1, [%rd6]; add.u32 %r1, %r1, 100;\n"
                "JOIN: shfl.sync.bfly.b32 %r5, %r1, 16, 31, -1; mad.lo.u32 %r1, %r5, 1000, %r1;");
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned other = lane ^ 16;
      const unsigned low = lane % 16;
      const unsigned mine = lane < 16 ? (low ^ 7) + 100 : lane;
      const unsigned theirs = other < 16 ? (low ^ 7) + 100 : other;
      EXPECT_EQ(out[lane], theirs * 1000 + mine) << lane;
    }
  }
}

// Lanes 0 to 7 have all they wait for; 8 to 15 wait for the upper half, which goes around.
TEST_F(WarpBarrierTest, LanesAtABarrierThatIsNotReadyStay) {
  const auto out =
      RunWarp(std::string(kShared) +
              "mov.u32 %r4, 0; st.shared.u32 [%rd4], %r4; st.shared.u32 [%rd4+128], %r4;\n"
              "mov.u32 %r1, 5; setp.ge.u32 %p1, %r3, 16; @%p1 bra UPPER;\n"
              "setp.ge.u32 %p2, %r3, 8; @%p2 bra MIDDLE;\n"
              "bar.warp.sync 0xff; mov.u32 %r1, 6; bar.warp.sync 0xff; bra JOIN;\n"
              "MIDDLE: bar.warp.sync 0xffffff00; ld.shared.u32 %r1, [%rd4+32]; bra JOIN;\n"
              "UPPER: st.volatile.shared.u32 [%rd4], %r3; mov.u32 %r6, 0;\n"
              "ROUND: add.u32 %r6, %r6, 1; setp.lt.u32 %p3, %r6, %r3; @%p3 bra ROUND;\n"
              "st.shared.u32 [%rd4], %r6; bar.warp.sync 0xffffff00;\n"
              "JOIN:");
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], lane < 8 ? 6U : lane < 16 ? lane + 8 : 5U) << lane;
  }
}

TEST_F(WarpBarrierTest, LanesThatSpinDoNotHoldUpAWarpBarrierOfOthers) {
  const auto out = RunWarp(
      std::string(kShared) +
      "mov.u32 %r4, 0; st.shared.u32 [%rd4], %r4; st.shared.u32 [%rd5+128], %r4;\n"
      "setp.lt.u32 %p1, %r3, 16; @!%p1 bra ELSE;\n"
      "SPIN: ld.volatile.shared.u32 %r1, [%rd5+128]; setp.eq.u32 %p2, %r1, 0; @%p2 bra SPIN;\n"
      "bra JOIN;\n"
      "ELSE: bar.warp.sync 0xffff0000; mov.u32 %r1, 9; st.volatile.shared.u32 [%rd5+128], %r1;\n"
      "JOIN:");
  for (const std::uint32_t value : out) EXPECT_EQ(value, 9U);
}

}  // namespace
}  // namespace torpor::emulator
