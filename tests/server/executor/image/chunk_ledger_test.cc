#include "server/executor/image/chunk_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Numbers = std::vector<ChunkLedger::Number>;

constexpr ChunkLedger::Holder kOne = 1;
constexpr ChunkLedger::Holder kTwo = 2;

TEST(ChunkLedgerTest, ADomainsOwnChunksComeFirstAndOthersLast) {
  ChunkLedger ledger(6);
  EXPECT_THAT(ledger.Take(kOne, 10, 2).chunks, testing::SizeIs(2));
  ledger.ReturnAll(kOne);
  const Numbers of_20 = ledger.Take(kTwo, 20, 2).chunks;
  ledger.ReturnAll(kTwo);
  const ChunkLedger::Taken taken = ledger.Take(kTwo, 20, 5);
  EXPECT_EQ(taken.clean, 4u);
  EXPECT_THAT(Numbers(taken.chunks.begin(), taken.chunks.begin() + 2),
              testing::UnorderedElementsAreArray(of_20));
  EXPECT_EQ(taken.to_clear().size(), 1u);
  EXPECT_EQ(ledger.free_chunks(), 1u);
}

TEST(ChunkLedgerTest, WhatWasClearedIsItsNewDomains) {
  ChunkLedger ledger(1);
  ledger.Take(kOne, 10, 1);
  ASSERT_TRUE(ledger.Return(kOne, Numbers{0}));
  EXPECT_THAT(ledger.Take(kTwo, 20, 1).to_clear(), ElementsAre(0));
  ASSERT_TRUE(ledger.Return(kTwo, Numbers{0}));
  EXPECT_THAT(ledger.Take(kTwo, 20, 1).to_clear(), IsEmpty());
  ASSERT_TRUE(ledger.Return(kTwo, Numbers{0}));
  EXPECT_THAT(ledger.Take(kOne, 10, 1).to_clear(), ElementsAre(0));
}

TEST(ChunkLedgerTest, WhatIsUndoneHasItsFormerBytes) {
  ChunkLedger ledger(2);
  ledger.Take(kOne, 10, 1);
  ledger.ReturnAll(kOne);
  ledger.Undo(ledger.Take(kTwo, 20, 2));
  EXPECT_EQ(ledger.free_chunks(), 2u);
  EXPECT_FALSE(ledger.Holds(kTwo));
  EXPECT_EQ(ledger.Take(kOne, 10, 2).clean, 2u);
  ledger.ReturnAll(kOne);
  EXPECT_EQ(ledger.Take(kTwo, 20, 2).clean, 0u);
}

TEST(ChunkLedgerTest, AWrongReturnChangesNothing) {
  ChunkLedger ledger(4);
  const Numbers mine = ledger.Take(kOne, 10, 2).chunks;
  const Numbers others = ledger.Take(kTwo, 10, 1).chunks;
  EXPECT_FALSE(ledger.Return(kOne, Numbers{mine[0], others[0]}));
  EXPECT_FALSE(ledger.Return(kOne, Numbers{mine[0], mine[1], mine[0]}));
  EXPECT_FALSE(ledger.Return(kOne, Numbers{mine[0], 3}));
  EXPECT_FALSE(ledger.Return(kOne, Numbers{mine[0], 4}));
  EXPECT_FALSE(ledger.Return(kOne, Numbers{~0u}));
  EXPECT_EQ(ledger.free_chunks(), 1u);
  EXPECT_TRUE(ledger.Return(kOne, mine));
  EXPECT_FALSE(ledger.Return(kOne, mine));
  EXPECT_EQ(ledger.free_chunks(), 3u);
}

TEST(ChunkLedgerTest, TheMostRecentlyReturnedComeFirst) {
  ChunkLedger ledger(3);
  const Numbers all = ledger.Take(kOne, 10, 3).chunks;
  for (const ChunkLedger::Number number : {2u, 0u, 1u}) {
    ASSERT_TRUE(ledger.Return(kOne, Numbers{number}));
  }
  EXPECT_THAT(ledger.Take(kOne, 10, 1).chunks, ElementsAre(1));
  EXPECT_THAT(ledger.Take(kOne, 10, 1).chunks, ElementsAre(0));
}

}  // namespace
}  // namespace torpor::executor
