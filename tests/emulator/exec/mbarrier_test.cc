#include "emulator/exec/interface/mbarrier.h"

#include <string>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

TEST(Mbarrier, APhaseEndsWithTheLastArrival) {
  Mbarrier barrier;
  barrier.expected = barrier.pending = 3;
  barrier.Arrive(2);
  EXPECT_FALSE(barrier.odd);
  barrier.Arrive(1);
  EXPECT_TRUE(barrier.odd);
  EXPECT_EQ(barrier.pending, 3U);
}

TEST(Mbarrier, APhaseWaitsForItsBytes) {
  Mbarrier barrier;
  barrier.expected = barrier.pending = 1;
  barrier.Complete(16);  // may come before they are expected
  barrier.Expect(48);
  barrier.Arrive(1);
  EXPECT_FALSE(barrier.odd);
  barrier.Complete(32);
  EXPECT_TRUE(barrier.odd);
}

TEST(Mbarrier, WhoDropsIsNotExpectedAgain) {
  Mbarrier barrier;
  barrier.expected = barrier.pending = 2;
  barrier.Drop(1);
  barrier.Arrive(1);
  EXPECT_TRUE(barrier.odd);
  EXPECT_EQ(barrier.pending, 1U);
}

TEST(Mbarrier, AWordHoldsAllOfIt) {
  Mbarrier barrier;
  barrier.expected = Mbarrier::kMaxCount;
  barrier.pending = 77;
  barrier.transactions = -12345;
  barrier.odd = true;
  const Mbarrier read = Mbarrier::FromWord(barrier.ToWord());
  EXPECT_EQ(read.expected, barrier.expected);
  EXPECT_EQ(read.pending, barrier.pending);
  EXPECT_EQ(read.transactions, barrier.transactions);
  EXPECT_EQ(read.odd, barrier.odd);
}

class MbarrierTest : public KernelTest {
 protected:
  // out[tid] for 64 threads; %rd5 is the address of barrier `b`, which thread 0 has made for
  // `count` arrivals, %r3 the thread.
  std::vector<std::uint32_t> RunBlock(unsigned count, const std::string& body,
                                      const std::string& parameters = "") {
    LoadBody(
        ".reg .b64 %s<4>; mov.u32 %r3, %tid.x; mov.u64 %rd5, b; setp.ne.u32 %p1, %r3, 0;\n"
        "@%p1 bra MADE; mbarrier.init.shared::cta.b64 [%rd5], " +
            std::to_string(count) + "; fence.mbarrier_init.release.cluster;\nMADE: bar.sync 0;\n" +
            body + parameters,
        ".shared .align 8 .b64 b; .shared .align 16 .b8 data[1024];\n");
    DeviceArray<std::uint32_t> out(memory_, 64);
    MustRun("k", {1, 1, 1}, {64, 1, 1}, out.data());
    return {out.data(), out.data() + out.size()};
  }
};

// Each warp writes, arrives, waits and reads what the other one wrote, three times.
TEST_F(MbarrierTest, WarpsWaitForEachOtherByState) {
  const auto out =
      RunBlock(64,
               "mov.u64 %rd6, data; mul.wide.u32 %rd7, %r3, 4; add.u64 %rd6, %rd6, %rd7;\n"
               "xor.b32 %r4, %r3, 63; mov.u64 %rd8, data; mul.wide.u32 %rd7, %r4, 4;\n"
               "add.u64 %rd8, %rd8, %rd7; mov.u32 %r1, %r3; mov.u32 %r5, 0;\n"
               "ROUND: st.shared.u32 [%rd6], %r1; mbarrier.arrive.shared::cta.b64 %s1, [%rd5];\n"
               "WAIT: mbarrier.test_wait.shared.b64 %p2, [%rd5], %s1; @!%p2 bra WAIT;\n"
               "ld.shared.u32 %r6, [%rd8]; mbarrier.arrive.shared::cta.b64 %s1, [%rd5];\n"
               "AGAIN: mbarrier.try_wait.shared.b64 %p2, [%rd5], %s1; @!%p2 bra AGAIN;\n"
               "mad.lo.u32 %r1, %r6, 3, %r1; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 3;\n"
               "@%p2 bra ROUND;");
  std::vector<std::uint32_t> expected(64);
  for (std::uint32_t i = 0; i < 64; ++i) expected[i] = i;
  for (int round = 0; round < 3; ++round) {
    const std::vector<std::uint32_t> before = expected;
    for (std::uint32_t i = 0; i < 64; ++i) expected[i] = before[i] + 3 * before[63 - i];
  }
  EXPECT_EQ(out, expected);
}

TEST_F(MbarrierTest, AWarpWaitsForAParity) {
  // Warp 1 waits for phase 0, which warp 0 ends late.
  const auto out = RunBlock(
      32,
      "mov.u32 %r1, 0; setp.ge.u32 %p1, %r3, 32; @%p1 bra READ;\n"
      "mov.u32 %r4, 0;\n"
      "SPIN: nanosleep.u32 20; add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 50; @%p2 bra SPIN;\n"
      "mov.u32 %r4, 7; st.shared.u32 [data], %r4; mbarrier.arrive.release.cta.shared.b64 _, [b];\n"
      "bra DONE;\n"
      "READ: mbarrier.try_wait.parity.acquire.cta.shared.b64 %p2, [%rd5], 0; @!%p2 bra READ;\n"
      "ld.shared.u32 %r1, [data];\n"
      "mbarrier.test_wait.parity.shared.b64 %p3, [%rd5], 1; @%p3 add.u32 %r1, %r1, 100;\n"
      "DONE:");
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(out[i], i < 32 ? 0U : 7U) << i;
}

TEST_F(MbarrierTest, StatesTellPendingArrivals) {
  const auto out = RunBlock(
      10,
      "mov.u32 %r1, 0; setp.ne.u32 %p1, %r3, 0; @%p1 bra DONE;\n"
      "mbarrier.arrive.noComplete.release.cta.shared.b64 %s1, [%rd5], 3;\n"
      "mbarrier.arrive_drop.shared.b64 %s2, [%rd5];\n"
      "mbarrier.pending_count.b64 %r1, %s1; mbarrier.pending_count.b64 %r4, %s2;\n"
      "mad.lo.u32 %r1, %r1, 100, %r4;\n"
      "mbarrier.arrive.shared.b64 %s1, [%rd5], 6; mbarrier.arrive.shared.b64 %s1, [%rd5];\n"
      "mbarrier.pending_count.b64 %r4, %s1; mad.lo.u32 %r1, %r1, 100, %r4;\n"
      "mbarrier.inval.shared.b64 [%rd5];\nDONE:");
  EXPECT_EQ(out[0], 100709U);
}

TEST_F(MbarrierTest, BulkCopiesCompleteTheirBytes) {
  LoadText(std::string(kPtxHeader) +
           ".shared .align 8 .b64 b; .shared .align 16 .b8 data[1024];\n"
           ".visible .entry k(.param .u64 from, .param .u64 to)\n{\n"
           ".reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<6>;\n"
           "ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to]; mov.u32 %r1, %tid.x;\n"
           "setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;\n"
           "mbarrier.init.shared::cta.b64 [b], 1;\n"
           "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [b], 512;\n"
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%rd1], 256,"
           " [b];\n"
           "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [data+256], [%rd1+256],"
           " 256, [b];\n"
           "READY: bar.sync 0;\n"
           "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [b], 0; @!%p2 bra WAIT;\n"
           "mul.wide.u32 %rd3, %r1, 8; mov.u64 %rd4, data; add.u64 %rd4, %rd4, %rd3;\n"
           "ld.shared.u64 %rd5, [%rd4]; add.u64 %rd5, %rd5, 1; st.shared.u64 [%rd4], %rd5;\n"
           "fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra DONE;\n"
           "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [data], 512;\n"
           "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\n"
           "DONE: ret;\n}\n");
  DeviceArray<std::uint64_t> from(memory_, 64);
  DeviceArray<std::uint64_t> to(memory_, 64);
  for (std::size_t i = 0; i < 64; ++i) from[i] = i * 1000;
  MustRun("k", {1, 1, 1}, {64, 1, 1}, from.data(), to.data());
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(to[i], i * 1000 + 1);
  // What does not lie on 16 bytes, and what may not be read.
  MustFail(ExecError::kMisalignedAddress, "k", {64, 1, 1}, from.data() + 1, to.data());
  const std::uint64_t host[64] = {};
  const auto* const aligned = reinterpret_cast<const std::uint64_t*>(
      (reinterpret_cast<std::uintptr_t>(host) + 15) / 16 * 16);
  MustFail(ExecError::kIllegalAddress, "k", {64, 1, 1}, aligned, to.data());
}

TEST_F(MbarrierTest, AsynchronousCopiesArrive) {
  const auto out =
      RunBlock(64,
               "mov.u32 %r1, 0; cp.async.mbarrier.arrive.shared.b64 [%rd5];\n"
               "mbarrier.test_wait.parity.shared.b64 %p2, [%rd5], 0; @%p2 add.u32 %r1, %r1, 1;\n"
               "bar.sync 0; cp.async.mbarrier.arrive.noinc.shared.b64 [%rd5]; bar.sync 0;\n"
               "mbarrier.test_wait.parity.shared.b64 %p2, [%rd5], 0; @%p2 add.u32 %r1, %r1, 2;");
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(out[i], 2U) << i;
}

}  // namespace
}  // namespace torpor::emulator
