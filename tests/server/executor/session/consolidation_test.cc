#include "server/executor/session/consolidation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/server/executor/image/in_order.h"
#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {
namespace {

constexpr Bytes kChunk = FakeCuda::kChunk;

// An arena of 8 chunks, which are a partition each.
class ConsolidationTest : public testing::Test {
 protected:
  ConsolidationTest()
      : device_(*Device::Open(cuda_.driver(), 0)),
        pool_(*PhysicalPool::Create(*device_, 8 * kChunk, kChunk)),
        arena_(*ArenaMemory::Create(*device_, *pool_)),
        store_(testing::TempDir()),
        modules_(*device_, store_),
        stream_(*device_->CreateStream()) {}

  // With so many chunks in one block, each byte of which is the session's number.
  Session& Open(std::uint64_t number, Bytes chunks, const std::string& function = "") {
    SessionIdentity identity = MakeIdentity(number);
    if (!function.empty()) identity.function = function;
    MappedSessionFiles files = MakeSessionFiles(identity);
    std::memset(files.image.image.data(), static_cast<int>(number), chunks * kChunk);
    auto memory =
        *SessionMemory::Open(*device_, *arena_, hasher_, identity, std::move(files), directory_);
    memories_.push_back(memory.get());
    EXPECT_TRUE(
        registry_
            .Add(std::make_unique<Session>(SessionEnvironment{*device_, *arena_, hasher_, modules_,
                                                              libraries_, output_, events_},
                                           identity, std::move(memory)))
            .ok());
    Session& session = **registry_.Find(identity.id);
    EXPECT_TRUE(session.SwapIn(InOrder({{0, chunks * kChunk}}), /*is_whole=*/true).ok());
    return session;
  }
  // Of the sessions that were opened, in order.
  SessionMemory& memory(std::size_t index) { return *memories_[index]; }
  static std::uint64_t base(std::uint64_t number) { return MakeIdentity(number).device_base; }

  // Two holes of two chunks each, with a session of two between them.
  Session& OpenBetweenHoles(const std::string& function = "") {
    Open(1, 2);
    Session& leaving = Open(2, 2);
    Session& moving = Open(3, 2, function);
    MemoryFindings findings;
    EXPECT_TRUE(leaving.SwapOut({.drop = true}, stream_, findings).ok());
    EXPECT_EQ(arena_->fragmented_bytes(), 2 * kChunk);
    return moving;
  }
  // Whether a step has moved anything.
  bool Step() { return *Consolidation(registry_, *arena_).Step(stream_, is_wanted_); }
  bool Holds(std::size_t index, std::uint64_t number, Bytes chunks) {
    const auto* const bytes =
        reinterpret_cast<const std::uint8_t*>(memory(index).Resolve(base(number), chunks * kChunk));
    return bytes != nullptr && std::all_of(bytes, bytes + chunks * kChunk,
                                           [&](std::uint8_t byte) { return byte == number; });
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PhysicalPool> pool_;
  std::unique_ptr<ArenaMemory> arena_;
  HostBlockHasher hasher_;
  ModuleStore store_;
  ModuleLibrary modules_;
  MathLibraries libraries_;
  KernelOutput output_;
  SessionEvents events_;
  MemoryDirectory directory_;
  SessionRegistry registry_;
  std::vector<SessionMemory*> memories_;
  std::atomic<bool> is_wanted_{false};
  CUstream stream_ = nullptr;
};

TEST_F(ConsolidationTest, FreeMemoryComesTogetherAndBytesStayRight) {
  OpenBetweenHoles();
  const CUdeviceptr before = memory(2).Resolve(base(3), 1);
  EXPECT_TRUE(Step());
  EXPECT_NE(memory(2).Resolve(base(3), 1), before);
  memory(2).RefreshAddresses();
  EXPECT_EQ(memory(2).Translate(base(3) + 5), memory(2).Resolve(base(3), 1) + 5);
  EXPECT_TRUE(Holds(2, 3, 2));
  EXPECT_TRUE(Holds(0, 1, 2));
  EXPECT_EQ(arena_->fragmented_bytes(), 0u);
  EXPECT_FALSE(Step()) << "there is nothing to gain any more";
  const ArenaMemory::Place place = *arena_->Take({9}, 4 * kChunk);
  EXPECT_EQ(place.pieces.size(), 1u);
  ASSERT_TRUE(arena_->Give(place).ok());
}

TEST_F(ConsolidationTest, WhatWasMovedIsWrittenBackFromWhereItIs) {
  Session& moved = OpenBetweenHoles();
  ASSERT_TRUE(Step());
  *reinterpret_cast<std::uint8_t*>(memory(2).Resolve(base(3), 1)) = 77;
  memory(2).image().MarkDirty();
  MemoryFindings findings;
  ASSERT_TRUE(moved.SwapOut({.drop = true}, stream_, findings).ok());
  ASSERT_TRUE(moved.SwapIn(InOrder({{0, 2 * kChunk}}), /*is_whole=*/true).ok());
  EXPECT_EQ(*reinterpret_cast<std::uint8_t*>(memory(2).Resolve(base(3), 1)), 77);
  EXPECT_EQ(arena_->use().used, 4 * kChunk);
}

TEST_F(ConsolidationTest, WhoIsWantedMovesNothingMore) {
  OpenBetweenHoles();
  is_wanted_ = true;
  EXPECT_FALSE(Step());
  EXPECT_EQ(arena_->use().moving, 0u);
}

TEST_F(ConsolidationTest, ASwapInBetweenTwoStepsFindsAllInOrder) {
  OpenBetweenHoles();
  EXPECT_TRUE(Step());
  Session& returning = **registry_.Find({2});
  ASSERT_TRUE(returning.SwapIn(InOrder({{0, 2 * kChunk}}), /*is_whole=*/true).ok());
  MemoryFindings findings;
  ASSERT_TRUE((*registry_.Find({1}))->SwapOut({.drop = true}, stream_, findings).ok());
  EXPECT_EQ(arena_->fragmented_bytes(), 2 * kChunk);
  EXPECT_TRUE(Step());
  EXPECT_TRUE(Holds(1, 2, 2));
  EXPECT_TRUE(Holds(2, 3, 2));
  EXPECT_EQ(arena_->fragmented_bytes(), 0u);
  EXPECT_EQ(arena_->use().used, 4 * kChunk);
}

TEST_F(ConsolidationTest, ACopyThatFailsLeavesTheBlockWhereItWas) {
  OpenBetweenHoles();
  cuda_.RefuseDeviceCopies(true);
  EXPECT_FALSE(Consolidation(registry_, *arena_).Step(stream_, is_wanted_).ok());
  EXPECT_EQ(arena_->use().moving, 0u);
  EXPECT_TRUE(Holds(2, 3, 2));
  cuda_.RefuseDeviceCopies(false);
  EXPECT_TRUE(Step());
}

TEST_F(ConsolidationTest, WhoHasALeaseStays) {
  Session& session = OpenBetweenHoles();
  ASSERT_TRUE(session.BeginLease({5}).ok());
  EXPECT_FALSE(Step());
  ASSERT_TRUE(session.EndLease({5}, SteadyClock().Now() + std::chrono::seconds(9)).ok());
  EXPECT_TRUE(Step());
}

TEST_F(ConsolidationTest, WhatNobodyHasLookedThroughSinceItChangedStays) {
  Session& session = OpenBetweenHoles();
  memory(2).image().MarkDirty();
  EXPECT_FALSE(Step());
  MemoryFindings findings;
  ASSERT_TRUE(session.SwapOut({}, stream_, findings).ok());
  EXPECT_TRUE(Step());
}

TEST_F(ConsolidationTest, AnUploadThatNobodyHasLookedAtKeepsItsImageInPlace) {
  Session& session = OpenBetweenHoles();
  memory(2).image().uploads().NoteUnseen(base(3), 8);
  EXPECT_FALSE(Step());
  MemoryFindings findings;
  ASSERT_TRUE(session.SwapOut({}, stream_, findings).ok());
  EXPECT_TRUE(Step());
}

TEST_F(ConsolidationTest, MemoryThatHoldsAddressesStays) {
  Session& session = OpenBetweenHoles();
  const std::uint64_t address = memory(2).Resolve(base(3) + kChunk, 1);
  std::memcpy(reinterpret_cast<void*>(memory(2).Resolve(base(3), 8)), &address, sizeof address);
  memory(2).image().MarkDirty();
  MemoryFindings findings;
  ASSERT_TRUE(session.SwapOut({}, stream_, findings).ok());
  EXPECT_FALSE(Step());
}

TEST_F(ConsolidationTest, MemoryThatIsSaidToHoldAddressesStaysUntilItIsSaidNotTo) {
  Session& session = OpenBetweenHoles();
  MemoryFindings findings;
  ASSERT_TRUE(session.SwapOut({.drop = true}, stream_, findings).ok());
  ASSERT_TRUE(session.SwapIn({{{2 * kChunk, 4 * kChunk}, true}}, /*is_whole=*/true).ok());
  EXPECT_FALSE(session.may_be_moved());
  ASSERT_TRUE(session.SwapOut({.drop = true}, stream_, findings).ok());
  ASSERT_TRUE(session.SwapIn(InOrder({{2 * kChunk, 4 * kChunk}}), /*is_whole=*/true).ok());
  EXPECT_TRUE(session.may_be_moved());
}

TEST_F(ConsolidationTest, SessionsOfOneFunctionMayHaveEachOthersAddresses) {
  OpenBetweenHoles("function-1");
  EXPECT_FALSE(Step());
}

TEST_F(ConsolidationTest, WhatIsPiecedTogetherStays) {
  OpenBetweenHoles();
  Open(4, 4);
  EXPECT_EQ(arena_->use().used, 8 * kChunk);
  MemoryFindings findings;
  ASSERT_TRUE((*registry_.Find({1}))->SwapOut({.drop = true}, stream_, findings).ok());
  while (Step()) continue;
  EXPECT_TRUE(Holds(2, 3, 2));
  EXPECT_TRUE(Holds(3, 4, 4));
}

}  // namespace
}  // namespace torpor::executor
