// Hand-written PTX: what nvcc does not write, or only in circumstances that are hard to provoke.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class ConformanceTest : public KernelTest {
 protected:
  // out[tid] of one warp.
  std::vector<std::uint32_t> RunWarp(const std::string& body, const std::string& before = "") {
    LoadBody(body, before);
    DeviceArray<std::uint32_t> out(memory_, 32);
    MustRun("k", {1, 1, 1}, {32, 1, 1}, out.data());
    return {out.data(), out.data() + 32};
  }

  void ExpectRefused(const std::string& body, const std::string& before, const std::string& word) {
    LoadBody(body, before);
    const auto result = program_->Preload("k", {32, 1, 1});
    ASSERT_FALSE(result) << body;
    EXPECT_EQ(result.failure().code, ExecError::kUnsupported);
    EXPECT_NE(result.failure().message.find(word), std::string::npos) << result.failure().message;
  }
};

// %rd4 is the address of the lane's word of s, %r3 the lane.
constexpr char kShared[] =
    ".shared .align 4 .b32 s[64];\nmov.u32 %r3, %laneid; mov.u64 %rd5, s;\n"
    "mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd5, %rd4;\n";

TEST_F(ConformanceTest, WarpBarriersInDifferentBranchesMeet) {
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
TEST_F(ConformanceTest, WarpBarriersKeepThreeBranchesInStep) {
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

TEST_F(ConformanceTest, WarpBarriersInAnyBranchesMeet) {
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
TEST_F(ConformanceTest, AWarpBarrierWaitsForItsMembersOnly) {
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
TEST_F(ConformanceTest, LanesAtABarrierThatIsNotReadyStay) {
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

TEST_F(ConformanceTest, LanesThatSpinDoNotHoldUpAWarpBarrierOfOthers) {
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

TEST_F(ConformanceTest, AParameterOfAFunctionHasAnAddress) {
  const auto out = RunWarp(
      ".param .b32 a; .param .align 8 .b8 b[6]; .param .b32 r;\n"
      "mov.u32 %r3, %laneid; add.u32 %r3, %r3, 77; st.param.b32 [a], %r3;\n"
      "mov.b32 %r4, 0x04030201; st.param.b32 [b], %r4; st.param.b16 [b+4], 0x0605;\n"
      "call (r), f, (a, b); ld.param.b32 %r1, [r];",
      ".func (.param .b32 r) f(.param .b32 a, .param .align 8 .b8 b[6])\n{\n"
      ".reg .b64 %rd<5>; .reg .b32 %r<9>;\n"
      "mov.b64 %rd1, a; ld.local.u32 %r1, [%rd1]; mov.b64 %rd2, b;\n"
      "mov.u32 %r2, %laneid; rem.u32 %r2, %r2, 6; cvt.u64.u32 %rd3, %r2;\n"
      "add.u64 %rd3, %rd2, %rd3; ld.u8 %r3, [%rd3]; mad.lo.u32 %r1, %r3, 1000, %r1;\n"
      "st.param.b32 [r], %r1; ret;\n}\n");
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], (lane % 6 + 1) * 1000 + lane + 77);
}

TEST_F(ConformanceTest, TheStackGrowsAndShrinks) {
  // Each lane fills lane + 1 words, in a loop that gives them back; what it saw last is the sum.
  const auto out = RunWarp(
      ".reg .b64 %a<9>; mov.u32 %r3, %laneid; add.u32 %r4, %r3, 1; mul.wide.u32 %a1, %r4, 4;\n"
      "mov.u32 %r1, 0; mov.u32 %r5, 0;\n"
      "ROUND: stacksave.u64 %a2; alloca.u64 %a3, %a1, 8; mov.u32 %r6, 0; mov.u64 %a4, %a3;\n"
      "FILL: st.local.u32 [%a4], %r4; add.u64 %a4, %a4, 4; add.u32 %r6, %r6, 1;\n"
      "setp.lt.u32 %p1, %r6, %r4; @%p1 bra FILL; mov.u32 %r6, 0; mov.u64 %a4, %a3;\n"
      "READ: ld.local.u32 %r7, [%a4]; add.u32 %r1, %r1, %r7; add.u64 %a4, %a4, 4;\n"
      "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r4; @%p1 bra READ;\n"
      "stackrestore.u64 %a2; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 2000; @%p1 bra ROUND;");
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], 2000 * (lane + 1) * (lane + 1)) << lane;
  }
}

// f ends each third thread, all that call it if their number is large; g calls f.
constexpr char kEndingFunctions[] =
    ".func f(.param .b32 a)\n{\n.reg .b32 %r<3>; .reg .pred %p<3>;\n"
    "ld.param.b32 %r1, [a]; setp.gt.u32 %p2, %r1, 99; @%p2 bra ALL;\n"
    "rem.u32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0; @%p1 exit;\nret;\nALL: exit;\n}\n"
    ".func g(.param .b32 a)\n{\n.reg .b32 %r<3>; .param .b32 b;\n"
    "ld.param.b32 %r1, [a]; st.param.b32 [b], %r1; call f, (b);\nret;\n}\n";

TEST_F(ConformanceTest, AnExitInAFunctionEndsTheThread) {
  const std::string call =
      ".param .b32 a; mov.u32 %r3, %laneid; st.param.b32 [a], %r3; call g, (a);\n";
  const std::string count = "activemask.b32 %r4; popc.b32 %r5, %r4; add.u32 %r1, %r5, %r3;";
  const auto direct = RunWarp(call + count, kEndingFunctions);
  const auto guarded = RunWarp(
      "mov.u32 %r3, %laneid; setp.lt.u32 %p1, %r3, 7;\n"
      ".param .b32 a; st.param.b32 [a], %r3; @%p1 call g, (a);\n" +
          count,
      kEndingFunctions);
  const auto pointer = RunWarp(
      ".param .b32 a; mov.u32 %r3, %laneid; st.param.b32 [a], %r3; mov.u64 %rd4, g;\n"
      "mov.u64 %rd5, f; setp.lt.u32 %p1, %r3, 16; selp.b64 %rd4, %rd4, %rd5, %p1;\n"
      "P: .callprototype _ (.param .b32 _); call %rd4, (a), P;\n" +
          count,
      kEndingFunctions);
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(direct[lane], lane % 3 == 0 ? 0 : 21 + lane) << lane;
    EXPECT_EQ(guarded[lane], lane % 3 == 0 && lane < 7 ? 0 : 29 + lane) << lane;
    EXPECT_EQ(pointer[lane], direct[lane]) << lane;
  }
}

TEST_F(ConformanceTest, AWarpEndsWithItsLastThreadInAFunction) {
  const auto out = RunWarp(
      ".param .b32 a; mov.u32 %r3, %laneid; setp.lt.u32 %p1, %r3, 4; mov.u32 %r4, 100;\n"
      "st.param.b32 [a], %r4; @%p1 bra STAY; call g, (a); trap;\nSTAY: mov.u32 %r1, 5;",
      kEndingFunctions);
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane < 4 ? 5U : 0U) << lane;
}

TEST_F(ConformanceTest, ACallMustBringAsManyBytesAsItsCalleeDeclares) {
  const std::string large =
      ".func (.param .align 16 .b8 r[16384]) f() { st.param.b32 [r+16380], 1; ret; }\n";
  ExpectRefused(".param .b32 r; call (r), f; ld.param.b32 %r1, [r];", large, "f");
  const std::string result = ".func (.param .b32 r) f() { st.param.b32 [r], 1; ret; }\n";
  ExpectRefused(".param .b32 a; call f, (a); mov.u32 %r1, 0;", result, "f");
  ExpectRefused(".shared .b32 a; call (a), f; mov.u32 %r1, 0;", result, "argument");
  const std::string print =
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n";
  ExpectRefused(".param .b32 r, f, a; call (r), vprintf, (f, a); mov.u32 %r1, 0;", print,
                "vprintf");
  const std::string heap =
      ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
      ".extern .func free(.param .b64 p);\n";
  ExpectRefused(".param .b32 r; .param .b64 n; call (r), malloc, (n); mov.u32 %r1, 0;", heap,
                "malloc");
  ExpectRefused(".param .b32 p; call free, (p); mov.u32 %r1, 0;", heap, "free");
}

TEST_F(ConformanceTest, AFunctionOfOtherSizesIsNoTargetOfAnIndirectCall) {
  LoadBody(
      ".param .b32 r; mov.u64 %rd4, f; P: .callprototype (.param .b32 _) _ ();\n"
      "call (r), %rd4, (), P; ld.param.b32 %r1, [r];",
      ".func (.param .align 16 .b8 r[16384]) f() { st.param.b32 [r+16380], 1; ret; }\n");
  DeviceArray<std::uint32_t> out(memory_, 32);
  LaunchConfig config;
  config.block = {32, 1, 1};
  const auto result = Launch("k", config, out.data());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().code, ExecError::kTrap) << result.failure().message;
}

// Copies `bytes` bytes with a fourth operand over a shared word of ones, and loads the word `at`.
std::string AsyncCopy(const std::string& bytes, const std::string& fourth, unsigned at) {
  std::string body =
      ".shared .align 16 .b8 s[1024]; mov.u32 %r3, %laneid; mov.u32 %r4, -1; mov.u32 %r5, s;\n"
      "shl.b32 %r6, %r3, 4; add.u32 %r5, %r5, %r6; mov.u64 %rd4, source;\n"
      "setp.lt.u32 %p1, %r3, 16; and.b32 %r7, %r3, 7;\n";
  for (unsigned i = 0; i < 4; ++i) {
    body += "st.shared.u32 [%r5+" + std::to_string(4 * i) + "], %r4;\n";
  }
  return body + "cp.async.ca.shared.global [%r5], [%rd4], " + bytes + ", " + fourth +
         "; cp.async.wait_all; ld.shared.u32 %r1, [%r5+" + std::to_string(at) + "];";
}

constexpr char kSource[] =
    ".global .align 16 .b32 source[4] = {0x44332211, 0x88776655, 0xccbbaa99, 0x00ffeedd};\n";

TEST_F(ConformanceTest, AnAsyncCopyFillsUpWithZeros) {
  const std::uint32_t words[] = {0x44332211, 0x88776655};
  for (unsigned word = 0; word < 2; ++word) {
    const auto out = RunWarp(AsyncCopy("8", "%r7", 4 * word), kSource);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned size = lane & 7;
      const unsigned here = size <= 4 * word ? 0 : std::min(size - 4 * word, 4U);
      const auto keep = static_cast<std::uint32_t>((std::uint64_t{1} << (8 * here)) - 1);
      EXPECT_EQ(out[lane], words[word] & keep) << lane;
    }
  }
  EXPECT_EQ(RunWarp(AsyncCopy("4", "2", 0), kSource)[0], 0x2211U);
}

TEST_F(ConformanceTest, AnAsyncCopyMayIgnoreItsSource) {
  const auto out = RunWarp(AsyncCopy("16", "%p1", 12), kSource);
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane < 16 ? 0U : 0x00ffeeddU);
  // Nothing is read: the address may be anything.
  std::string wild = AsyncCopy("16", "%p1", 8);
  wild.replace(wild.find("setp.lt.u32"), 0, "mov.u64 %rd4, 16;\n");
  wild.replace(wild.find("%r3, 16;"), 8, "%r3, 32;");
  EXPECT_EQ(RunWarp(wild, kSource)[31], 0U);
}

TEST_F(ConformanceTest, ProductsOf24BitsSaturate) {
  const auto one = [&](const char* a, const char* b, const char* c) {
    return RunWarp(std::string("mov.u32 %r3, ") + a + "; mov.u32 %r4, " + b + "; mov.u32 %r5, " +
                   c + "; mad24.hi.sat.s32 %r1, %r3, %r4, %r5;")[0];
  };
  EXPECT_EQ(one("0x7fffff", "0x7fffff", "0x7fffffff"), 0x7fffffffU);
  EXPECT_EQ(one("0x7fffff", "0x800000", "0x80000000"), 0x80000000U);
  EXPECT_EQ(one("0x010000", "0x010000", "5"), 0x10005U);
}

// Bit k of a lane's answer is the k-th property of its number.
TEST_F(ConformanceTest, PropertiesOfNumbersAreTested) {
  const std::uint32_t numbers[] = {0,          0x80000000, 1,          0x807fffff, 0x00800000,
                                   0xff7fffff, 0x3f800000, 0x7f800000, 0xff800000, 0x7fc00000};
  std::string before = ".const .align 4 .b32 numbers[32] = {";
  for (const std::uint32_t number : numbers) before += std::to_string(number) + ", ";
  before += "0};\n";
  std::string tests;
  unsigned bit = 1;
  for (const char* property :
       {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}) {
    tests += std::string("testp.") + property + ".f32 %p1, %f1; @%p1 or.b32 %r1, %r1, " +
             std::to_string(bit) + ";\n";
    bit *= 2;
  }
  const auto out = RunWarp(
      "mov.u32 %r1, 0; mov.u32 %r3, %laneid; mov.u64 %rd5, numbers; mul.wide.u32 %rd4, %r3, 4;\n"
      "add.u64 %rd4, %rd5, %rd4; ld.const.f32 %f1, [%rd4];\n" +
          tests,
      before);
  // Zeros count as normal.
  constexpr std::uint32_t kNormal = 1 + 4 + 16;
  constexpr std::uint32_t kSubnormal = 1 + 4 + 32;
  constexpr std::uint32_t kInfinite = 2 + 4;
  const std::uint32_t expected[] = {kNormal, kNormal, kSubnormal, kSubnormal, kNormal,
                                    kNormal, kNormal, kInfinite,  kInfinite,  8};
  for (std::size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

}  // namespace
}  // namespace torpor::emulator
