// Copies from global to shared memory that end later, and the barriers that tell: PTX ISA, sections
// "Data Movement and Conversion Instructions: Asynchronous copy" and "mbarrier".
#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

U64 Same(U64 a) { return a; }

void AddGroups(std::vector<PtxCase>& cases) {
  const std::string store = "st.global.u64 [GG], A; st.global.u64 [GG+8], A; ";
  const std::string load = " ld.shared.u64 D, [SS];";
  const auto add = [&](const std::string& text) {
    cases.push_back(Each("cp.async", store + text + load, Same));
  };
  add("cp.async.ca.shared.global [SS], [GG], 4; cp.async.ca.shared.global [SS+4], [GG+4], 4;"
      " cp.async.wait_all;");
  add("cp.async.ca.shared.global [SS], [GG], 8; cp.async.commit_group; cp.async.wait_group 0;");
  add("cp.async.cg.shared.global [SS], [GG], 16; cp.async.commit_group; cp.async.wait_group 0;");
  add("cp.async.cg.shared.global [SS], [GG], 16; cp.async.commit_group;"
      " cp.async.ca.shared.global [SS+16], [GG+8], 8; cp.async.commit_group; cp.async.wait_group "
      "1;");
  // Fewer bytes of source than of target: the rest is zero.
  cases.push_back(Each(
      "cp.async",
      store +
          "st.shared.u64 [SS], -1;"
          " cp.async.ca.shared.global [SS], [GG], 8, 3; cp.async.wait_all;" +
          load,
      +[](U64 a) { return a & 0xffffff; }));
}

// A barrier of one arrival for each thread, in the thread's own shared memory.
void AddBarriers(std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      "mbarrier",
      "mbarrier.init.shared.b64 [SS], 2; mbarrier.arrive.shared.b64 X0, [SS];"
      " mbarrier.test_wait.shared.b64 P, [SS], X0;"
      " mbarrier.arrive.shared.b64 X1, [SS];"
      " mbarrier.test_wait.shared.b64 Q, [SS], X0; mbarrier.inval.shared.b64 [SS];"
      " selp.u32 T0, 1, 0, P; selp.u32 T1, 2, 0, Q; or.b32 D, T0, T1;",
      +[]() { return U32{2}; }));
  cases.push_back(Each(
      "mbarrier",
      "mbarrier.init.shared.b64 [SS], 1;"
      " mbarrier.test_wait.parity.shared.b64 P, [SS], 0;"
      " mbarrier.arrive.shared::cta.b64 X0, [SS];"
      " mbarrier.try_wait.parity.shared.b64 Q, [SS], 0;"
      " mbarrier.inval.shared.b64 [SS];"
      " selp.u32 T0, 1, 0, P; selp.u32 T1, 2, 0, Q; or.b32 D, T0, T1;",
      +[]() { return U32{2}; }));
  cases.push_back(Each("cp.async",
                       "st.global.u64 [GG], A; mbarrier.init.shared.b64 [SS+16], 1;"
                       " cp.async.ca.shared.global [SS], [GG], 8;"
                       " cp.async.mbarrier.arrive.noinc.shared.b64 [SS+16];"
                       " WAIT: mbarrier.try_wait.parity.shared.b64 P, [SS+16], 0; @!P bra WAIT;"
                       " ld.shared.u64 D, [SS];",
                       Same));
  cases.push_back(Each(
      "mbarrier",
      "mbarrier.init.shared.b64 [SS], 3;"
      " mbarrier.arrive.shared.b64 X0, [SS], 2;"
      " mbarrier.pending_count.b64 D, X0;",
      +[]() { return U32{3}; }));
}

void AddBulkCopies(std::vector<PtxCase>& cases) {
  cases.push_back(Each(
      "cp.async.bulk",
      "st.global.u64 [GG], A; st.global.u64 [GG+8], B; fence.proxy.async;"
      " mbarrier.init.shared.b64 [SS+16], 1;"
      " mbarrier.arrive.expect_tx.shared::cta.b64 X0, [SS+16], 16;"
      " cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [SS], [GG], 16, [SS+16];"
      " WAIT: mbarrier.try_wait.shared.b64 P, [SS+16], X0; @!P bra WAIT;"
      " ld.shared.v2.u64 {X1, X2}, [SS]; xor.b64 D, X1, X2;",
      +[](U64 a, U64 b) { return a ^ b; }));
  cases.push_back(Each(
      "cp.async.bulk",
      "st.shared.u64 [SS], A; st.shared.u64 [SS+8], B; fence.proxy.async;"
      " cp.async.bulk.global.shared::cta.bulk_group [GG], [SS], 16;"
      " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
      " ld.global.v2.u64 {X1, X2}, [GG]; add.u64 D, X1, X2;",
      +[](U64 a, U64 b) { return a + b; }));
}

}  // namespace

std::vector<PtxCase> AsynchronousCopyCases() {
  std::vector<PtxCase> cases;
  AddGroups(cases);
  AddBarriers(cases);
  AddBulkCopies(cases);
  return cases;
}

}  // namespace torpor::conformance
