#include "memory/trace/replay.h"

#include <gtest/gtest.h>

#include <memory>

#include "memory/tiered_placement.h"
#include "memory/trace/model_trace.h"
#include "memory/trace/single_pool.h"

namespace torpor::memory {
namespace {

AllocationTrace Parse(const std::string& lines) {
  const auto trace = ParseTrace("torpor-allocation-trace 1\n" + lines, "test");
  EXPECT_TRUE(trace.ok()) << trace.status();
  return *trace;
}

// Every look at the clock is a nanosecond later.
ReplayOptions TickingOptions() {
  ReplayOptions options;
  options.now_ns = [now = std::uint64_t{0}]() mutable { return now++; };
  return options;
}

ReplayReport Replay(const std::string& lines, ArenaAllocator& arena) {
  ArenaTarget target(arena);
  return ReplayTrace(Parse(lines), target, TickingOptions());
}

ArenaAllocator Tiers(Bytes bytes) {
  return ArenaAllocator(std::make_unique<TieredPlacement>(bytes, PartitionSizes{}));
}

TEST(Replay, AReloadedFunctionGetsAllItsBlocksAgain) {
  ArenaAllocator arena = Tiers(128 * kMiB);
  const ReplayReport report =
      Replay("load 1\nalloc 1 1 100\nalloc 1 2 200\nevict 1\nload 1\n", arena);
  EXPECT_EQ(arena.use().used, 300u);
  EXPECT_EQ(report.allocation_ns.size(), 4u);
  EXPECT_EQ(report.free_ns.size(), 2u);
  ASSERT_EQ(report.loads.size(), 1u);
  EXPECT_GT(report.loads[0].nanoseconds, 2u);
}

TEST(Replay, EvictsWhereATracesMemoryDoesNotFit) {
  ArenaAllocator arena = Tiers(128 * kMiB);
  const ReplayReport report = Replay(
      "load 1\nalloc 1 1 67108864\nload 2\nalloc 2 1 67108864\nload 3\nalloc 3 1 67108864\n"
      "evict 1\nload 2\nload 1\n",
      arena);
  EXPECT_EQ(report.forced_evictions, 2u);
  EXPECT_EQ(report.failures, 0u);
  EXPECT_EQ(arena.used_by(Owner{2}), 67108864u);
  EXPECT_EQ(arena.used_by(Owner{4}), 0u);
}

TEST(Replay, AFunctionThatWasEvictedByForceIsLoadedBeforeItAllocates) {
  ArenaAllocator arena = Tiers(128 * kMiB);
  const ReplayReport report = Replay(
      "load 1\nalloc 1 1 67108864\nload 2\nalloc 2 1 134217728\nalloc 1 2 1\nload 2\n", arena);
  EXPECT_EQ(report.forced_evictions, 3u);
  EXPECT_EQ(report.failures, 0u);
}

TEST(Replay, AFunctionWithoutBlocksIsNoEviction) {
  ArenaAllocator arena = Tiers(128 * kMiB);
  const ReplayReport report =
      Replay("load 1\nload 2\nalloc 2 1 134217728\nload 3\nalloc 3 1 1\n", arena);
  EXPECT_EQ(report.forced_evictions, 1u);
  EXPECT_EQ(report.failures, 0u);
}

TEST(Replay, KnowsNoFragmentsWhereFreeMemoryIsNotKnown) {
  ArenaAllocator arena = Tiers(128 * kMiB);
  ArenaTarget target(arena, /*knows_free=*/false);
  const ReplayReport report =
      ReplayTrace(Parse("load 1\nalloc 1 1 5\nload 1\n"), target, TickingOptions());
  EXPECT_EQ(report.max_fragmented_share, 0);
}

TEST(Replay, CountsBlocksThatNothingCanServe) {
  ArenaAllocator arena = Tiers(128 * kMiB);
  const ReplayReport report = Replay("load 1\nalloc 1 1 134217729\nfree 1 1\n", arena);
  EXPECT_EQ(report.failures, 1u);
  EXPECT_EQ(report.forced_evictions, 0u);
}

TEST(Replay, FindsBlocksWhereTheyHaveBeenMoved) {
  ArenaAllocator arena = Tiers(512 * kMiB);
  const ReplayReport report = Replay(
      "load 1\nalloc 1 1 67108864\nload 2\nalloc 2 1 67108864\nload 3\nalloc 3 1 67108864\n"
      "evict 2\nload 3\nidle\nfree 3 1\nevict 1\n",
      arena);
  EXPECT_EQ(report.moves, 1u);
  EXPECT_EQ(report.moved_bytes, 67108864u);
  EXPECT_EQ(arena.block_count(), 0u);
  EXPECT_GT(report.max_fragmented_share, 0);
}

TEST(Replay, TheTiersServeModelsWithFewerForcedEvictionsThanASinglePool) {
  ModelTraceOptions options;
  options.functions = 60;
  options.requests = 600;
  options.gpu_bytes = 6 * kGiB;
  const AllocationTrace trace = MakeModelTrace(options);
  constexpr Bytes kArena = 6 * kGiB + 512 * kMiB;
  ArenaAllocator tiers = Tiers(kArena);
  ArenaTarget over_tiers(tiers);
  ArenaAllocator pool(std::make_unique<SinglePool>(std::make_unique<ArenaSource>(kArena)));
  ArenaTarget over_pool(pool);
  const ReplayReport with_tiers = ReplayTrace(trace, over_tiers, TickingOptions());
  const ReplayReport with_pool = ReplayTrace(trace, over_pool, TickingOptions());
  EXPECT_EQ(with_tiers.failures, 0u);
  EXPECT_LT(with_tiers.forced_evictions, with_pool.forced_evictions);
  EXPECT_GT(with_tiers.moves, 0u);
}

}  // namespace
}  // namespace torpor::memory
