// What Hopper added: clusters, elected threads, and others.
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class ClusterTest : public KernelTest {
 protected:
  std::vector<std::uint32_t> RunBlock(unsigned threads, const std::string& body,
                                      const std::string& before = "") {
    LoadBody(body, before);
    DeviceArray<std::uint32_t> out(memory_, threads);
    MustRun("k", {1, 1, 1}, {threads, 1, 1}, out.data());
    return {out.data(), out.data() + threads};
  }
  void MustRunInClusters(Dim3 grid, Dim3 block, Dim3 cluster, DeviceArray<std::uint32_t>& out) {
    const auto result = Launch("k", {.grid = grid, .block = block, .cluster = cluster}, out.data());
    ASSERT_TRUE(result) << result.failure().message;
  }
};

TEST_F(ClusterTest, OneBlockIsAClusterOfItsOwn) {
  LoadText(std::string(kPtxHeader) +
           ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<3>;\n"
           ".reg .pred %p;\nld.param.u64 %rd1, [out]; mov.u32 %r1, %clusterid.x;\n"
           "mov.u32 %r2, %nclusterid.x; mov.u32 %r3, %cluster_ctaid.x;\n"
           "mov.u32 %r4, %cluster_nctaid.y; mov.u32 %r5, %cluster_ctarank;\n"
           "mov.u32 %r6, %cluster_nctarank; mov.pred %p, %is_explicit_cluster;\n"
           "selp.u32 %r7, 1, 0, %p; mul.wide.u32 %rd2, %r1, 24; add.u64 %rd1, %rd1, %rd2;\n"
           "st.global.v2.u32 [%rd1], {%r2, %r3}; st.global.v2.u32 [%rd1+8], {%r4, %r5};\n"
           "st.global.v2.u32 [%rd1+16], {%r6, %r7};\nret;\n}\n");
  DeviceArray<std::uint32_t> out(memory_, 18);
  MustRun("k", {3, 1, 1}, {1, 1, 1}, out.data());
  const std::uint32_t expected[] = {3, 0, 1, 0, 1, 0};
  for (std::size_t i = 0; i < 18; ++i) EXPECT_EQ(out[i], expected[i % 6]) << i;
}

// Every block stores (clusterid, cluster_ctaid) along x and y, rank, and the cluster's sizes.
TEST_F(ClusterTest, BlocksKnowTheirPlaces) {
  LoadText(std::string(kPtxHeader) +
           ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<20>; .reg .b64 %rd<3>;\n"
           ".reg .pred %p;\nld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x;\n"
           "mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r1, %r2, %r3, %r1;\n"
           "mul.wide.u32 %rd2, %r1, 32; add.u64 %rd1, %rd1, %rd2;\n"
           "mov.u32 %r4, %clusterid.x; mov.u32 %r5, %clusterid.y; mov.u32 %r6, %cluster_ctaid.x;\n"
           "mov.u32 %r7, %cluster_ctaid.y; mov.u32 %r8, %cluster_ctarank;\n"
           "mov.u32 %r9, %cluster_nctarank; mov.u32 %r10, %nclusterid.x;\n"
           "mov.pred %p, %is_explicit_cluster; selp.u32 %r11, 1, 0, %p;\n"
           "mov.u32 %r12, %cluster_nctaid.y; mad.lo.u32 %r11, %r12, 10, %r11;\n"
           "st.global.v4.u32 [%rd1], {%r4, %r5, %r6, %r7};\n"
           "st.global.v4.u32 [%rd1+16], {%r8, %r9, %r10, %r11};\nret;\n}\n");
  DeviceArray<std::uint32_t> out(memory_, 8 * 24);
  MustRunInClusters({6, 4, 1}, {32, 1, 1}, {3, 2, 1}, out);
  for (std::uint32_t block = 0; block < 24; ++block) {
    const std::uint32_t x = block % 6;
    const std::uint32_t y = block / 6;
    const std::uint32_t expected[] = {x / 3, y / 2, x % 3, y % 2, y % 2 * 3 + x % 3, 6, 2, 21};
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(out[block * 8 + i], expected[i]) << block;
  }
}

// Each thread writes to the next block's shared memory by a 32-bit address, and adds to the memory
// of the block after by a generic one.
TEST_F(ClusterTest, BlocksReachEachOthersSharedMemory) {
  LoadText(std::string(kPtxHeader) +
           ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<20>; .reg .b64 %rd<9>;\n"
           ".shared .align 4 .b32 pad[33]; .shared .align 4 .b32 s[64];\n"
           "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank;\n"
           "mov.u32 %r3, %cluster_nctarank; add.u32 %r4, %r2, 1; rem.u32 %r4, %r4, %r3;\n"
           "add.u32 %r5, %r2, 2; rem.u32 %r5, %r5, %r3; mov.u32 %r6, s; shl.b32 %r7, %r1, 2;\n"
           "add.u32 %r6, %r6, %r7; mapa.shared::cluster.u32 %r8, %r6, %r4;\n"
           "mad.lo.u32 %r9, %r2, 1000, %r1; st.shared::cluster.u32 [%r8], %r9;\n"
           "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
           "cvt.u64.u32 %rd2, %r6; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, %r5;\n"
           "atom.add.u32 %r10, [%rd3], 500000; getctarank.u64 %r11, %rd3;\n"
           "getctarank.shared::cluster.u32 %r12, %r8;\n"
           "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
           "ld.shared.u32 %r13, [%r6]; mad.lo.u32 %r13, %r11, 1000000, %r13;\n"
           "mad.lo.u32 %r13, %r12, 100000000, %r13;\n"
           "mov.u32 %r14, %ctaid.x; mov.u32 %r15, %ntid.x; mad.lo.u32 %r14, %r14, %r15, %r1;\n"
           "mul.wide.u32 %rd4, %r14, 4; add.u64 %rd1, %rd1, %rd4; st.global.u32 [%rd1], %r13;\n"
           "ret;\n}\n");
  for (const std::uint32_t size : {2U, 3U, 16U}) {
    DeviceArray<std::uint32_t> out(memory_, std::size_t{64} * size * 4);
    MustRunInClusters({size * 4, 1, 1}, {64, 1, 1}, {size, 1, 1}, out);
    for (std::uint32_t i = 0; i < out.size(); ++i) {
      const std::uint32_t rank = i / 64 % size;
      const std::uint32_t from = (rank + size - 1) % size;
      EXPECT_EQ(out[i], (rank + 1) % size * 100000000U + (rank + 2) % size * 1000000U + 500000U +
                            from * 1000 + i % 64)
          << size << " " << i;
    }
  }
}

// Block 0 arrives, and waits for a flag that block 1 sets behind the barrier.
TEST_F(ClusterTest, ArrivingIsNotWaiting) {
  LoadText(std::string(kPtxHeader) +
           ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<3>;\n"
           ".reg .pred %p<3>;\nld.param.u64 %rd1, [out]; mov.u32 %r1, %cluster_ctarank;\n"
           "barrier.cluster.arrive; setp.ne.u32 %p1, %r1, 0; @%p1 bra SECOND;\n"
           "SPIN: nanosleep.u32 20; ld.volatile.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0;\n"
           "@%p2 bra SPIN; barrier.cluster.wait; st.global.u32 [%rd1+4], %r2; ret;\n"
           "SECOND: barrier.cluster.wait; st.volatile.global.u32 [%rd1], 7; ret;\n}\n");
  DeviceArray<std::uint32_t> out(memory_, 2);
  out[0] = out[1] = 0;
  MustRunInClusters({2, 1, 1}, {1, 1, 1}, {2, 1, 1}, out);
  EXPECT_EQ(out[1], 7U);
}

// Warps that have ended count as arrived, in every phase.
TEST_F(ClusterTest, NobodyWaitsForTheEnded) {
  LoadText(std::string(kPtxHeader) +
           ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<3>;\n"
           ".reg .pred %p<3>;\nld.param.u64 %rd1, [out]; mov.u32 %r1, %cluster_ctarank;\n"
           "mov.u32 %r2, %tid.x; setp.ge.u32 %p1, %r2, 32; @%p1 ret;\n"
           "barrier.cluster.arrive; setp.eq.u32 %p2, %r1, 1; @%p2 ret;\n"
           "barrier.cluster.wait; barrier.cluster.arrive; barrier.cluster.wait;\n"
           "atom.global.add.u32 %r3, [%rd1], 1; ret;\n}\n");
  DeviceArray<std::uint32_t> out(memory_, 1);
  out[0] = 0;
  MustRunInClusters({3, 1, 1}, {64, 1, 1}, {3, 1, 1}, out);
  EXPECT_EQ(out[0], 64U);
}

TEST_F(ClusterTest, SpacesOfOtherBlocks) {
  LoadText(std::string(kPtxHeader) +
           ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
           ".reg .pred %p<9>; .shared .align 4 .b32 s[8]; .local .align 4 .b32 l[8];\n"
           "ld.param.u64 %rd1, [out]; mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1;\n"
           "mov.u64 %rd2, s; cvta.shared.u64 %rd2, %rd2; mapa.u64 %rd3, %rd2, %r2;\n"
           "mov.u64 %rd4, l; cvta.local.u64 %rd4, %rd4;\n"
           "isspacep.shared::cta %p1, %rd2; isspacep.shared %p2, %rd3;\n"
           "isspacep.shared::cluster %p3, %rd2; isspacep.shared::cluster %p4, %rd3;\n"
           "isspacep.local %p5, %rd3; isspacep.global %p6, %rd3;\n"
           "isspacep.shared::cluster %p7, %rd4; isspacep.local %p8, %rd4;\n"
           "selp.u32 %r3, 1, 0, %p1; selp.u32 %r4, 2, 0, %p2; or.b32 %r3, %r3, %r4;\n"
           "selp.u32 %r4, 4, 0, %p3; or.b32 %r3, %r3, %r4; selp.u32 %r4, 8, 0, %p4;\n"
           "or.b32 %r3, %r3, %r4; selp.u32 %r4, 16, 0, %p5; or.b32 %r3, %r3, %r4;\n"
           "selp.u32 %r4, 32, 0, %p6; or.b32 %r3, %r3, %r4; selp.u32 %r4, 64, 0, %p7;\n"
           "or.b32 %r3, %r3, %r4; selp.u32 %r4, 128, 0, %p8; or.b32 %r3, %r3, %r4;\n"
           "mul.wide.u32 %rd5, %r1, 4; add.u64 %rd1, %rd1, %rd5; st.global.u32 [%rd1], %r3;\n"
           "ret;\n}\n");
  DeviceArray<std::uint32_t> out(memory_, 2);
  MustRunInClusters({2, 1, 1}, {1, 1, 1}, {2, 1, 1}, out);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(out[i], 1U + 4 + 8 + 128) << i;
}

// A rank beyond the cluster is no memory, not another cluster's.
TEST_F(ClusterTest, BlocksOutsideTheClusterAreOutOfReach) {
  LoadText(std::string(kPtxHeader) +
           ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<9>;\n"
           ".shared .align 4 .b32 s[8]; mov.u32 %r1, s;\n"
           "mapa.shared::cluster.u32 %r2, %r1, 40000; ld.shared::cluster.u32 %r3, [%r2];\n"
           "st.shared.u32 [%r1], %r3; ret;\n}\n");
  LaunchConfig config{.grid = {2, 1, 1}, .block = {1, 1, 1}, .cluster = {2, 1, 1}};
  const auto result = Launch("k", config, std::uint64_t{0});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().code, ExecError::kIllegalAddress) << result.failure().message;
}

// Each block arrives at the barrier of block 0 alone, where block 0 waits.
TEST_F(ClusterTest, BlocksArriveAtDistantBarriers) {
  LoadText(std::string(kPtxHeader) +
           ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<3>;\n"
           ".reg .pred %p<3>; .shared .align 8 .b64 barrier;\n"
           "ld.param.u64 %rd1, [out]; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, barrier;\n"
           "mov.u32 %r3, %cluster_nctarank; mbarrier.init.shared::cta.b64 [%r2], %r3;\n"
           "barrier.cluster.arrive; barrier.cluster.wait;\n"
           "atom.global.add.u32 %r4, [%rd1], 1; mapa.shared::cluster.u32 %r5, %r2, 0;\n"
           "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];\n"
           "setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE;\n"
           "WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r2], 0;\n"
           "@!%p2 bra WAIT; ld.global.u32 %r6, [%rd1]; st.global.u32 [%rd1+4], %r6;\n"
           "DONE: barrier.cluster.arrive; barrier.cluster.wait; ret;\n}\n");
  DeviceArray<std::uint32_t> out(memory_, 2);
  out[0] = out[1] = 0;
  MustRunInClusters({4, 1, 1}, {1, 1, 1}, {4, 1, 1}, out);
  EXPECT_EQ(out[1], 4U);
}

TEST_F(ClusterTest, SizesThatNoLaunchMayHave) {
  const auto launch = [&](const std::string& attributes, const Dim3& cluster) {
    LoadText(std::string(kPtxHeader) + ".entry k() " + attributes + "\n{ ret; }\n");
    const auto result = Launch("k", {.grid = {12, 4, 2}, .block = {32, 1, 1}, .cluster = cluster});
    return result ? std::string() : result.failure().message;
  };
  constexpr Dim3 kNone = {0, 0, 0};
  EXPECT_EQ(launch("", {3, 2, 1}), "");
  EXPECT_EQ(launch("", {1, 1, 1}), "");
  EXPECT_EQ(launch(".explicitcluster .reqnctapercluster 2, 1, 1", kNone), "");
  EXPECT_EQ(launch(".reqnctapercluster 2, 2", {2, 2, 1}), "");
  EXPECT_EQ(launch("", {0, 1, 1}), "kernel k: clusters of 0x1x1 blocks, more than 16, or none");
  EXPECT_EQ(launch("", {6, 4, 1}), "kernel k: clusters of 6x4x1 blocks, more than 16, or none");
  EXPECT_EQ(launch(".reqnctapercluster 1, 1, 4294967295", kNone),
            "kernel k: clusters of 1x1x65535 blocks, more than 16, or none");
  EXPECT_EQ(launch("", {5, 1, 1}),
            "kernel k: a grid of 12x4x2 blocks does not divide into clusters of 5x1x1 blocks");
  EXPECT_EQ(launch(".reqnctapercluster 2, 1, 1", {4, 1, 1}),
            "kernel k: clusters of 4x1x1 blocks, but it is made for 2x1x1");
  EXPECT_EQ(launch(".explicitcluster", kNone),
            "kernel k: it needs a size of clusters, and none is given");
  const KernelInfo info{.name = "old"};
  const auto old = CheckLaunch(info, {.grid = {1, 1, 1}, .block = {1, 1, 1}, .cluster = {1, 1, 1}},
                               {.compute_capability = 86, .shared_bytes_per_block = kKiB});
  ASSERT_FALSE(old);
  EXPECT_EQ(old.failure().code, ExecError::kInvalidCluster);
  EXPECT_NE(old.failure().message.find("capability 8.6"), std::string::npos);
}

TEST_F(ClusterTest, ItsBarrierIsTheBlocks) {
  const auto out =
      RunBlock(64,
               ".reg .b32 %at, %far; mov.u32 %r3, %tid.x; shl.b32 %r4, %r3, 2; mov.u32 %at, s;\n"
               "add.u32 %at, %at, %r4; st.shared::cta.u32 [%at], %r3;\n"
               "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n"
               "xor.b32 %r4, %r3, 63; shl.b32 %r4, %r4, 2; mov.u32 %at, s; add.u32 %at, %at, %r4;\n"
               "mapa.shared::cluster.u32 %far, %at, 0; ld.shared::cluster.u32 %r1, [%far];\n"
               "getctarank.shared::cluster.u32 %r5, %far; add.u32 %r1, %r1, %r5;",
               ".shared .align 4 .b32 s[64];\n");
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(out[i], 63 - i);
}

TEST_F(ClusterTest, TheFirstMemberIsElected) {
  const auto out = RunBlock(32,
                            "mov.u32 %r1, 0; mov.u32 %r3, %laneid; setp.lt.u32 %p1, %r3, 5;\n"
                            "@%p1 bra DONE; elect.sync %r4|%p2, 0xffffff80;\n"
                            "selp.u32 %r5, 100, 0, %p2; add.u32 %r1, %r4, %r5;\nDONE:");
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(out[i], i < 5 ? 0U : i == 7 ? 107U : 7U) << i;
}

TEST_F(ClusterTest, FloatsAreReduced) {
  const std::string values =
      "mov.u32 %r3, %laneid; sub.s32 %r4, %r3, 20; cvt.rn.f32.s32 %f1, %r4;\n"
      "setp.eq.u32 %p1, %r3, 9; @%p1 mov.f32 %f1, 0f7FC00000;\n";
  const auto one = [&](const std::string& operation, const std::string& members) {
    const std::uint32_t bits = RunBlock(32, values + "redux.sync." + operation + ".f32 %f2, %f1, " +
                                                members + "; mov.b32 %r1, %f2;")[3];
    return std::bit_cast<float>(bits);
  };
  EXPECT_EQ(one("min", "0xffffffff"), -20.0F);
  EXPECT_EQ(one("max", "0xffffffff"), 11.0F);
  EXPECT_EQ(one("max.abs", "0xffffffff"), 20.0F);
  EXPECT_EQ(one("min.abs", "0x000000ff"), 13.0F);
  EXPECT_TRUE(std::isnan(one("min.NaN", "0xffffffff")));
  EXPECT_EQ(one("max.NaN", "0x0000000f"), -17.0F);
}

// Hints change nothing; their operands are parsed.
TEST_F(ClusterTest, HintsAreHints) {
  LoadText(std::string(kPtxHeader) +
           ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
           "ld.param.u64 %rd1, [out]; setmaxnreg.inc.sync.aligned.u32 40;\n"
           "createpolicy.fractional.L2::evict_last.b64 %rd2, 1.0;\n"
           "ld.global.L1::no_allocate.L2::cache_hint.u32 %r1, [%rd1], %rd2;\n"
           "add.u32 %r1, %r1, 5; st.global.L2::cache_hint.u32 [%rd1], %r1, %rd2;\n"
           "prefetch.global.L2 [%rd1]; applypriority.global.L2::evict_normal [%rd1], 128;\n"
           "discard.global.L2 [%rd1+128], 128; griddepcontrol.launch_dependents;\n"
           "griddepcontrol.wait; fence.proxy.async; fence.acq_rel.cluster; fence.sc.gpu;\n"
           "membar.proxy.alias; cp.async.bulk.prefetch.L2.global [%rd1], 16;\nret;\n}\n");
  DeviceArray<std::uint32_t> out(memory_, 64);
  out[0] = 2;
  MustRun("k", {1, 1, 1}, {1, 1, 1}, out.data());
  EXPECT_EQ(out[0], 7U);
}

}  // namespace
}  // namespace torpor::emulator
