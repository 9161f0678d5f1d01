#include "memory/checkpoint.h"

#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  CheckpointRecord record_;
  Checkpoint executor_{record_};
  const Checkpoint daemon_{record_};
};

TEST_F(CheckpointTest, AnImageIsWholeUnlessItIsWrittenOver) {
  EXPECT_TRUE(daemon_.is_whole());
  EXPECT_EQ(daemon_.saved_command(), 0u);
  executor_.NoteOverwritten();
  EXPECT_FALSE(daemon_.is_whole());
  executor_.Commit(7);
  EXPECT_TRUE(daemon_.is_whole());
  EXPECT_EQ(daemon_.saved_command(), 7u);
  executor_.NoteExceeded();
  EXPECT_TRUE(daemon_.is_exceeded());
  EXPECT_TRUE(daemon_.is_whole()) << "the bytes of the checkpoint are there";
  EXPECT_EQ(daemon_.saved_command(), 7u);
  executor_.Commit(9);
  EXPECT_FALSE(daemon_.is_exceeded());
  EXPECT_EQ(daemon_.saved_command(), 9u);
  EXPECT_EQ(daemon_.number(), 2u);
}

// An executor that had the session before another one has nothing newer to say.
TEST_F(CheckpointTest, OlderCommandsOnlyEndTheWriteBack) {
  executor_.Commit(9);
  executor_.NoteOverwritten();
  executor_.Commit(4);
  EXPECT_TRUE(daemon_.is_whole());
  EXPECT_EQ(daemon_.saved_command(), 9u);
}

}  // namespace
}  // namespace torpor::memory
