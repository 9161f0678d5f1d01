// What Hopper added for clusters and elected threads. A cluster is one block here.
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

TEST_F(ClusterTest, ClustersOfSeveralBlocksAreNotSupported) {
  const auto preload = [&](const std::string& cluster) {
    LoadText(std::string(kPtxHeader) + ".entry k() .explicitcluster .reqnctapercluster " + cluster +
             "\n{ ret; }\n");
    return program_->Preload("k", {32, 1, 1});
  };
  EXPECT_TRUE(preload("1, 1, 1"));
  for (const char* cluster : {"2, 1, 1", "1, 2", "1, 1, 4294967295"}) {
    const auto result = preload(cluster);
    ASSERT_FALSE(result) << cluster;
    EXPECT_EQ(result.failure().code, ExecError::kUnsupported);
    EXPECT_NE(result.failure().message.find("cluster"), std::string::npos);
  }
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

// Hints that change nothing, with the operands that they bring.
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
