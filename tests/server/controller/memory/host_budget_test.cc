#include "server/controller/memory/host_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/controller/memory/session_segments.h"

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kBudgetChunk = 2 * kMiB;
constexpr Bytes kBudget = 8 * kBudgetChunk + 2 * kSessionBytes;

class HostBudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t i = 0; i < 3; ++i) sessions_[i].id = sessions_[i].primary = SessionId{i + 1};
  }
  const HostBudget::Use& use() const { return segments_.host_memory(); }
  void Free(ClientSession& session, Bytes offset) {
    ASSERT_TRUE(session.memory.device->Free(offset));
    segments_.Settle(session);
  }

  SessionSegments segments_{
      {.addresses = {0x2000'0000'0000, 64 * kGiB, 0x3000'0000'0000, 64 * kGiB},
       .address_range = 2 * kGiB,
       .chunk_bytes = kBudgetChunk,
       .host_budget = kBudget}};
  ClientSession sessions_[3];
};

TEST_F(HostBudgetTest, AllocationsCountByChunksUntilTheyAreFreed) {
  ASSERT_TRUE(segments_.Begin(sessions_[0], kGiB).ok());
  EXPECT_EQ(use().used, kSessionBytes);
  const auto block = segments_.AllocateDevice(sessions_[0], kBudgetChunk + 1);
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(use().used, kSessionBytes + 2 * kBudgetChunk);
  ASSERT_TRUE(segments_.AllocateDevice(sessions_[0], 512).ok());
  EXPECT_EQ(use().used, kSessionBytes + 3 * kBudgetChunk);
  ASSERT_TRUE(segments_.AllocateDevice(sessions_[0], 512).ok()) << "in the same chunk";
  EXPECT_EQ(use().used, kSessionBytes + 3 * kBudgetChunk);
  Free(sessions_[0], block->offset);
  EXPECT_EQ(use().used, kSessionBytes + kBudgetChunk);
  segments_.Release(sessions_[0]);
  EXPECT_EQ(use().used, 0u);
}

TEST_F(HostBudgetTest, WhatDoesNotFitIsRefusedAndTakesNothing) {
  ASSERT_TRUE(segments_.Begin(sessions_[0], kGiB).ok());
  ASSERT_TRUE(segments_.Begin(sessions_[1], kGiB).ok());
  const auto first = segments_.AllocateDevice(sessions_[0], 7 * kBudgetChunk);
  ASSERT_TRUE(first.ok());
  const Bytes used = use().used;
  const Bytes occupied = sessions_[1].memory.device->occupied_bytes();
  const absl::Status refused = segments_.AllocateDevice(sessions_[1], 2 * kBudgetChunk).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("host memory: 4MiB more are needed, and functions have 14592KiB of "
                        "host_memory 16640KiB; raise host_memory"));
  EXPECT_EQ(use().used, used);
  EXPECT_EQ(use().refusals, 1u);
  EXPECT_EQ(sessions_[1].memory.device->occupied_bytes(), occupied);
  EXPECT_TRUE(segments_.AllocateDevice(sessions_[1], kBudgetChunk).ok()) << "to the last byte";
  EXPECT_EQ(use().used, kBudget);
  EXPECT_FALSE(segments_.AllocateHost(sessions_[1], 4096).ok()) << "pinned memory counts, too";
  Free(sessions_[0], first->offset);
  EXPECT_TRUE(segments_.AllocateHost(sessions_[1], 4096).ok());
}

TEST_F(HostBudgetTest, ASessionThatDoesNotFitIsRefused) {
  ASSERT_TRUE(segments_.Begin(sessions_[0], kGiB).ok());
  ASSERT_TRUE(segments_.Begin(sessions_[1], kGiB).ok());
  ASSERT_TRUE(segments_.AllocateDevice(sessions_[0], 8 * kBudgetChunk).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(segments_.Begin(sessions_[2], kGiB)));
  segments_.Release(sessions_[2]);
  segments_.Release(sessions_[1]);
  EXPECT_TRUE(segments_.Begin(sessions_[2], kGiB).ok());
}

TEST_F(HostBudgetTest, RefusalsOfASessionAreOneStreak) {
  ASSERT_TRUE(segments_.Begin(sessions_[0], kGiB).ok());
  EXPECT_FALSE(segments_.AllocateDevice(sessions_[0], 9 * kBudgetChunk).ok());
  EXPECT_TRUE(sessions_[0].memory.charge.is_refused);
  EXPECT_FALSE(segments_.AllocateDevice(sessions_[0], 9 * kBudgetChunk).ok());
  EXPECT_TRUE(segments_.AllocateDevice(sessions_[0], kBudgetChunk).ok());
  EXPECT_FALSE(sessions_[0].memory.charge.is_refused);
  EXPECT_EQ(use().refusals, 2u);
}

}  // namespace
}  // namespace torpor::server
