#include "server/executor/image/held_contents.h"

#include <gtest/gtest.h>

#include "memory/block_states.h"

namespace torpor::executor {
namespace {

using memory::BlockStates;

TEST(HeldContents, KeepsWhatWasNotedLast) {
  HeldContents held;
  EXPECT_EQ(held.Of(7), BlockStates::kNoContent);
  held.Note(7, 20);
  held.Note(7, 30);
  held.Note(511, 40);
  held.Note(512, 50);
  EXPECT_EQ(held.Of(7), 30u);
  EXPECT_EQ(held.Of(8), BlockStates::kNoContent);
  EXPECT_EQ(held.Of(511), 40u);
  EXPECT_EQ(held.Of(512), 50u);
}

// The last block of 2^64 addresses; a word for each block before would take petabytes.
TEST(HeldContents, TakesNoMemoryForBlocksBefore) {
  constexpr std::size_t kLast = (std::size_t{1} << 48) - 1;
  HeldContents held;
  held.Note(kLast, 3);
  EXPECT_EQ(held.Of(kLast), 3u);
  EXPECT_EQ(held.Of(0), BlockStates::kNoContent);
}

}  // namespace
}  // namespace torpor::executor
