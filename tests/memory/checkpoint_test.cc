#include "memory/checkpoint.h"

#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

TEST(CheckpointTest, AnImageIsWholeBetweenWriteBacks) {
  std::uint64_t word = 0;
  Checkpoint executor(word);
  const Checkpoint daemon(word);
  EXPECT_TRUE(daemon.is_whole());
  EXPECT_EQ(daemon.saved_command(), 0u);
  executor.BeginWriting();
  EXPECT_FALSE(daemon.is_whole());
  executor.Commit(7);
  EXPECT_TRUE(daemon.is_whole());
  EXPECT_EQ(daemon.saved_command(), 7u);
  executor.BeginWriting();
  executor.BeginWriting();
  EXPECT_EQ(daemon.saved_command(), 7u);
}

// An executor that had the session before another one has nothing newer to say.
TEST(CheckpointTest, OlderCommandsOnlyEndTheWriteBack) {
  std::uint64_t word = 0;
  Checkpoint(word).Commit(9);
  Checkpoint(word).BeginWriting();
  Checkpoint(word).Commit(4);
  EXPECT_TRUE(Checkpoint(word).is_whole());
  EXPECT_EQ(Checkpoint(word).saved_command(), 9u);
}

}  // namespace
}  // namespace torpor::memory
